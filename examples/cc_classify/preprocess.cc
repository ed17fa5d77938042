#include "examples/cc_classify/preprocess.h"

#include <algorithm>
#include <cmath>

namespace classify {
namespace {

// Keys' cubic convolution kernel with a = -1/2.
double Cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

// Of which input values an output value is a mean, and with what weights.
struct Window {
  int first;
  std::vector<double> weights;
};

std::vector<Window> Windows(int input_size, int output_size) {
  const double scale = static_cast<double>(input_size) / output_size;
  const double stretch = std::max(scale, 1.0);  // the kernel gets wider when the picture shrinks
  std::vector<Window> windows;
  for (int i = 0; i < output_size; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::floor(center - 2 * stretch + 0.5)));
    const int end = std::min(input_size, static_cast<int>(std::floor(center + 2 * stretch + 0.5)));
    Window window{first, {}};
    double sum = 0;
    for (int j = first; j < end; ++j) {
      window.weights.push_back(Cubic((j + 0.5 - center) / stretch));
      sum += window.weights.back();
    }
    for (double& weight : window.weights) weight /= sum;
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace

std::vector<float> Resize(const Image& image, int left, int top, int crop_width, int crop_height,
                          int width, int height) {
  const std::vector<Window> columns = Windows(crop_width, width);
  const std::vector<Window> rows = Windows(crop_height, height);
  std::vector<float> result;
  std::vector<double> narrow(static_cast<size_t>(width) * crop_height);  // resized in x only
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < crop_height; ++y) {
      for (int x = 0; x < width; ++x) {
        double sum = 0;
        int from = left + columns[x].first;
        for (const double weight : columns[x].weights) {
          sum += weight * image.at(from++, top + y, channel);
        }
        narrow[static_cast<size_t>(y) * width + x] = sum;
      }
    }
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        double sum = 0;
        int from = rows[y].first;
        for (const double weight : rows[y].weights) {
          sum += weight * narrow[static_cast<size_t>(from++) * width + x];
        }
        result.push_back(static_cast<float>(std::clamp(sum, 0.0, 255.0)));
      }
    }
  }
  return result;
}

std::vector<float> Preprocess(const Image& image) {
  const int side = std::min(image.width, image.height);
  const int crop = std::max(1, static_cast<int>(std::lround(side * 224.0 / 256.0)));
  std::vector<float> values = Resize(image, (image.width - crop) / 2, (image.height - crop) / 2,
                                     crop, crop, kInputSize, kInputSize);
  for (float& value : values) value = (value - 127) / 128;
  return values;
}

}  // namespace classify
