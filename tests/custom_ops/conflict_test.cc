// Two models with different operators of one name in one binary, on each runtime.

#include <string>

#include "tests/custom_ops/copied.h"
#include "tests/custom_ops/copied_on_libtorch.h"
#include "tests/custom_ops/scaled.h"
#include "tests/custom_ops/scaled_on_libtorch.h"
#include "tests/expect.h"

template <typename Model>
void ExpectConflict(const std::string& name) {
  const auto model = Model::Load();
  Expect(!model.ok(), "it loads");
  if (model.ok()) return;
  const std::string& message = model.error().message();
  Expect(model.error().code() == aoti::ErrorCode::kOperatorNotUsable, "the code");
  for (const std::string& part :
       {name + ": operator tested::scale has two ",
        std::string("//tests/custom_ops:scale (tests/custom_ops/scale.cc:"),
        std::string("//tests/custom_ops:other_scale (tests/custom_ops/other_scale.cc:"),
        std::string("Link one of them, or give one of the operators another name")}) {
    Expect(message.find(part) != std::string::npos, message);
  }
}

int main() {
  ExpectConflict<tests::custom_ops::Scaled>("scaled");
  ExpectConflict<tests::custom_ops::Copied>("copied");
  ExpectConflict<tests::custom_ops::ScaledOnLibtorch>("scaled");
  ExpectConflict<tests::custom_ops::CopiedOnLibtorch>("copied");
  return failures == 0 ? 0 : 1;
}
