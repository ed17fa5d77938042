// Makes of a picture what EfficientNet-Lite0 was trained on.
#pragma once

#include <vector>

#include "examples/cc_classify/image.h"

namespace classify {

inline constexpr int kInputSize = 224;

// A part of the picture in another size. Bicubic; when the picture shrinks, each pixel of the
// result is a mean over all that fall onto it. Values are 0..255, one plane per channel.
std::vector<float> Resize(const Image& image, int left, int top, int crop_width, int crop_height,
                          int width, int height);

// float32[3, 224, 224]: the middle of the picture, with the border that evaluation on ImageNet
// leaves off (224 of 256), as (value - 127) / 128.
std::vector<float> Preprocess(const Image& image);

}  // namespace classify
