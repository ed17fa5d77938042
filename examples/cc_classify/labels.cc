#include "examples/cc_classify/labels.h"

#include <fstream>
#include <stdexcept>
#include <unordered_map>

namespace classify {
namespace {

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": can't open the file");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<std::string> ReadLabels(const std::string& synsets, const std::string& lemmas) {
  std::unordered_map<std::string, std::string> names;
  for (const std::string& line : ReadLines(lemmas)) {
    const size_t tab = line.find('\t');
    if (tab != line.npos) names[line.substr(0, tab)] = line.substr(tab + 1);
  }
  std::vector<std::string> labels;
  for (const std::string& synset : ReadLines(synsets)) {
    const auto name = names.find(synset);
    if (name == names.end()) throw std::runtime_error(lemmas + ": has no name for " + synset);
    labels.push_back(name->second);
  }
  return labels;
}

}  // namespace classify
