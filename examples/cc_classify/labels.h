// The names of ImageNet's 1,000 classes.
#pragma once

#include <string>
#include <vector>

namespace classify {

// `synsets` lists the classes' WordNet numbers in the model's order, one per line; `lemmas` gives
// names for numbers ("n02123045<TAB>tabby, tabby cat"). Throws std::runtime_error.
std::vector<std::string> ReadLabels(const std::string& synsets, const std::string& lemmas);

}  // namespace classify
