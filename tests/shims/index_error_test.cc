// A number that is not an index of a table is an error of the call that says which, also where
// several threads run the kernel; the process and the model go on.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/expect.h"
#include "tests/shims/lookup.h"
#include "tests/shims/lookup_libtorch.h"

namespace {

template <class Model>
void Test(const std::string& name) {
  auto model = Model::Load({.check_values = false});
  if (!model.ok()) return Expect(false, name + ": " + model.error().message());
  for (const std::size_t rows : {std::size_t{1}, std::size_t{65536}}) {
    std::vector<std::int64_t> ids(rows, 7);
    const auto run = [&] { return model->Run({.ids = {ids, {static_cast<std::int64_t>(rows)}}}); };
    Expect(run().ok(), name + ": indices in range");
    ids[rows / 2] = 1000;
    const auto out = run();
    Expect(!out.ok(), name + ": 1000 is out of range");
    if (!out.ok()) {
      const std::string want = name + ": index 1000 is out of range 0..999";
      Expect(out.error().message() == want, out.error().message());
    }
    ids[rows / 2] = 999;
    Expect(run().ok(), name + ": after an error");
  }
}

}  // namespace

int main() {
  Test<tests::shims::Lookup>("lookup");
  Test<tests::shims::LookupLibtorch>("lookup");
  return failures != 0;
}
