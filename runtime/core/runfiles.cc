#include "runtime/core/runfiles.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

namespace fs = std::filesystem;

// Undoes the escapes of Bazel's runfiles manifest.
std::string Unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char kind = text[++i];
    result += kind == 's' ? ' ' : kind == 'n' ? '\n' : kind == 'b' ? '\\' : kind;
  }
  return result;
}

// Looks at one place after another and remembers them for the error message.
class Search {
 public:
  Search(std::string runfile, bool folder) : runfile_(std::move(runfile)), folder_(folder) {}

  bool TryDirectory(const fs::path& directory) { return TryFile(directory / runfile_); }

  bool TryFile(const fs::path& path) {
    std::error_code ignored;
    if (!seen_.insert(path).second) return false;
    if (fs::is_regular_file(path, ignored)) {
      found_ = path.string();
      return true;
    }
    places_.push_back(path.string());
    return false;
  }

  // A runfiles manifest has lines "<runfile> <path>", and a single line for a folder that an action
  // made. In a line that begins with a space, spaces and backslashes in both parts are escaped.
  bool TryManifest(const fs::path& manifest) {
    std::ifstream lines(manifest);
    for (std::string line; std::getline(lines, line);) {
      const bool escaped = line.starts_with(' ');
      if (escaped) line.erase(0, 1);
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || space + 1 == line.size()) continue;
      std::string entry = line.substr(0, space);
      std::string path = line.substr(space + 1);
      if (escaped) {
        entry = Unescaped(entry);
        path = Unescaped(path);
      }
      if (entry == runfile_ && TryFile(path)) return true;
      entry += '/';
      if (runfile_.starts_with(entry) && TryFile(fs::path(path) / runfile_.substr(entry.size()))) {
        return true;
      }
    }
    return false;
  }

  bool TryEnvironment() {
    const char* directory = std::getenv("RUNFILES_DIR");
    if (directory != nullptr && *directory != '\0' && TryDirectory(directory)) return true;
    const char* manifest = std::getenv("RUNFILES_MANIFEST_FILE");
    return manifest != nullptr && *manifest != '\0' && TryManifest(manifest);
  }

  // `object`: an executable or a shared library.
  bool TryAround(const fs::path& object) {
    if (object.empty()) return false;
    if (TryDirectory(object.string() + ".runfiles")) return true;
    if (TryManifest(object.string() + ".runfiles_manifest")) return true;
    for (fs::path at = object.parent_path(); at.has_relative_path(); at = at.parent_path()) {
      if (at.extension() == ".runfiles" && TryDirectory(at)) return true;
    }
    const fs::path runfile(runfile_);
    const fs::path beside =
        folder_ ? runfile.parent_path().filename() / runfile.filename() : runfile.filename();
    return TryFile(object.parent_path() / beside);
  }

  const std::string& found() const { return found_; }
  std::string Places() const {
    std::string text;
    for (const std::string& place : places_) text += "\n  " + place;
    return text;
  }

 private:
  const std::string runfile_;
  const bool folder_;
  std::string found_;
  std::set<fs::path> seen_;
  std::vector<std::string> places_;
};

fs::path Executable() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

// The path by which the object was opened. Links are not followed: the neighbours of a link in a
// runfiles tree are not those of its target.
fs::path ObjectOf(const void* anchor) {
  Dl_info info{};
  if (dladdr(anchor, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::absolute(info.dli_fname, ignored);
}

}  // namespace

Result<std::string> FindRunfile(const std::string& runfile, const void* anchor, bool folder) {
  Search search(runfile, folder);
  if (search.TryEnvironment() || search.TryAround(Executable()) ||
      search.TryAround(ObjectOf(anchor))) {
    return search.found();
  }
  return Error(ErrorCode::kWeightsNotFound,
               StrCat("found no ", runfile, "; ",
                      folder ? "run the program with its runfiles, or put the folder beside it"
                             : "set LoadOptions::weights_path, run the program with its runfiles, "
                               "or put the file beside it",
                      ". Looked for:", search.Places()));
}

}  // namespace aoti::internal
