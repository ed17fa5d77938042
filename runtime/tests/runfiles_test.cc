#include "runtime/core/runfiles.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/tests/check.h"

namespace aoti::internal {
namespace {

namespace fs = std::filesystem;

const int g_anchor = 0;

// An empty directory, and an environment without variables for runfiles.
fs::path Fresh(const std::string& name) {
  unsetenv("RUNFILES_DIR");
  unsetenv("RUNFILES_MANIFEST_FILE");
  const char* parent = std::getenv("TEST_TMPDIR");
  const fs::path directory =
      fs::path(parent == nullptr ? "/tmp/aoti_runfiles_test" : parent) / name;
  fs::remove_all(directory);
  fs::create_directories(directory);
  return directory;
}

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(FindsInTheRunfilesDirectory) {
  const fs::path directory = Fresh("directory");
  Write(directory / "_main/m/w.safetensors", "x");
  setenv("RUNFILES_DIR", directory.c_str(), 1);
  const auto found = FindRunfile("_main/m/w.safetensors", &g_anchor);
  REQUIRE_OK(found);
  CHECK_EQ(*found, (directory / "_main/m/w.safetensors").string());
}

TEST(FindsInTheManifest) {
  const fs::path directory = Fresh("manifest");
  Write(directory / "real file", "x");
  Write(directory / "MANIFEST", "_main/m/w.safetensors.bak /nowhere\n_main/m/w.safetensors " +
                                    (directory / "real file").string() + "\n");
  setenv("RUNFILES_MANIFEST_FILE", (directory / "MANIFEST").c_str(), 1);
  const auto found = FindRunfile("_main/m/w.safetensors", &g_anchor);
  REQUIRE_OK(found);
  CHECK_EQ(*found, (directory / "real file").string());
}

// A folder that an action made has a single line, whatever is in it.
TEST(FindsInAFolderOfTheManifest) {
  const fs::path directory = Fresh("manifest_folder");
  Write(directory / "real/libx.so", "x");
  Write(directory / "MANIFEST",
        "_main/m/x.libtor /nowhere\n_main/m/x.libtorch " + (directory / "real").string() + "\n");
  setenv("RUNFILES_MANIFEST_FILE", (directory / "MANIFEST").c_str(), 1);
  const auto found = FindRunfile("_main/m/x.libtorch/libx.so", &g_anchor, /*folder=*/true);
  REQUIRE_OK(found);
  CHECK_EQ(*found, (directory / "real/libx.so").string());
}

TEST(ReadsEscapesOfTheManifest) {
  const fs::path directory = Fresh("manifest escapes");
  Write(directory / "w.safetensors", "x");
  std::string path = directory.string();
  path.replace(path.rfind(' '), 1, "\\s");
  Write(directory / "MANIFEST", " _main/a\\sb/w.safetensors " + path + "/w.safetensors\n");
  setenv("RUNFILES_MANIFEST_FILE", (directory / "MANIFEST").c_str(), 1);
  const auto found = FindRunfile("_main/a b/w.safetensors", &g_anchor);
  REQUIRE_OK(found);
  CHECK_EQ(*found, (directory / "w.safetensors").string());
}

TEST(SaysWhereItLooked) {
  const fs::path directory = Fresh("nothing");
  setenv("RUNFILES_DIR", directory.c_str(), 1);
  const auto found = FindRunfile("_main/m/absent.safetensors", &g_anchor);
  CHECK_TRUE(!found.ok());
  CHECK_TRUE(found.error().code() == ErrorCode::kWeightsNotFound);
  const std::string& message = found.error().message();
  CHECK_EQ(message.substr(0, message.find(';')), "found no _main/m/absent.safetensors");
  const fs::path program = fs::read_symlink("/proc/self/exe");
  for (const fs::path& place : {directory / "_main/m/absent.safetensors",
                                fs::path(program.string() + ".runfiles/_main/m/absent.safetensors"),
                                program.parent_path() / "absent.safetensors"}) {
    CHECK_TRUE(message.find("\n  " + place.string()) != std::string::npos);
  }
}

// A library of the same name may be beside the program, and may be another one.
TEST(LooksForAFolderBesideTheProgram) {
  const fs::path directory = Fresh("folder");
  setenv("RUNFILES_DIR", directory.c_str(), 1);
  const auto found = FindRunfile("_main/m/x.libtorch/libx.so", &g_anchor, /*folder=*/true);
  CHECK_TRUE(!found.ok());
  const std::string& message = found.error().message();
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const std::string beside = "\n  " + (program.parent_path() / "x.libtorch/libx.so").string();
  const std::string alone = "\n  " + (program.parent_path() / "libx.so").string();
  CHECK_TRUE(message.find(beside) != std::string::npos);
  CHECK_TRUE(message.find(alone) == std::string::npos);
}

}  // namespace
}  // namespace aoti::internal

int main() { return aoti::testing::RunAllTests(); }
