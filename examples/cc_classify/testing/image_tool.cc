// Lets a test call the reader of pictures.
//
//   image_tool pixels FILE            "WIDTH HEIGHT\n", then the pixels as bytes
//   image_tool resize FILE W H        the same of the picture in another size, rounded
//   image_tool input FILE             what Preprocess() makes of it, as float32

#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "examples/cc_classify/image.h"
#include "examples/cc_classify/preprocess.h"

namespace {

void Run(const std::vector<std::string>& arguments) {
  const classify::Image image = classify::ReadImage(arguments.at(1));
  if (arguments[0] == "pixels") {
    std::cout << image.width << " " << image.height << "\n";
    std::cout.write(reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size());
  } else if (arguments[0] == "resize") {
    const int width = std::stoi(arguments.at(2)), height = std::stoi(arguments.at(3));
    const auto planes = classify::Resize(image, 0, 0, image.width, image.height, width, height);
    std::cout << width << " " << height << "\n";
    const size_t plane = planes.size() / 3;
    for (size_t i = 0; i < planes.size(); ++i) {
      std::cout << static_cast<char>(std::lround(planes[i % 3 * plane + i / 3]));
    }
  } else if (arguments[0] == "input") {
    const auto values = classify::Preprocess(image);
    std::cout.write(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
