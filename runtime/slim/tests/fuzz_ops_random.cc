// Random numbers. All operators use one generator, which threads share.

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {
namespace {

std::int32_t* Type(Case& c, ScalarType dtype) { return c.Maybe(static_cast<std::int32_t>(dtype)); }

template <auto kFunction>
AOTITorchError New(Case& c) {
  const Sizes& size = c.List(c.Shape(0, 5));
  return kFunction(size.data(), std::ssize(size), Type(c, c.FloatType()), nullptr, nullptr, 0,
                   nullptr, c.Result());
}

template <auto kFunction>
AOTITorchError NewWithGenerator(Case& c) {
  const Sizes& size = c.List(c.Shape(0, 5));
  return kFunction(size.data(), std::ssize(size), nullptr, Type(c, c.FloatType()), nullptr, nullptr,
                   0, nullptr, c.Result());
}

template <auto kFunction>
AOTITorchError Like(Case& c) {
  const Handle self = c.In(c.FloatType(), c.Shape(0, 5));
  return kFunction(self, Type(c, c.FloatType()), nullptr, nullptr, 0, nullptr,
                   c.Maybe(c.random.Pick<std::int32_t>({0, 1})), c.Result());
}

template <auto kFunction>
AOTITorchError LikeWithGenerator(Case& c) {
  const Handle self = c.In(c.FloatType(), c.Shape(0, 5));
  return kFunction(self, nullptr, Type(c, c.FloatType()), nullptr, nullptr, 0, nullptr, nullptr,
                   c.Result());
}

AOTITorchError Randint(Case& c) {
  const Sizes& size = c.List(c.Shape(0, 5));
  return aoti_torch_cpu_randint(c.Int(1, 100), size.data(), std::ssize(size), Type(c, c.RealType()),
                                nullptr, nullptr, 0, nullptr, c.Result());
}

AOTITorchError RandintGenerator(Case& c) {
  const Sizes& size = c.List(c.Shape(0, 5));
  return aoti_torch_cpu_randint_generator(c.Int(1, 100), size.data(), std::ssize(size), nullptr,
                                          Type(c, c.IntegerType()), nullptr, nullptr, 0, nullptr,
                                          c.Result());
}

AOTITorchError RandintLow(Case& c) {
  const Sizes& size = c.List(c.Shape(0, 5));
  return aoti_torch_cpu_randint_low(c.Int(-100, 0), c.Int(1, 100), size.data(), std::ssize(size),
                                    Type(c, ScalarType::kInt64), nullptr, nullptr, 0, nullptr,
                                    c.Result());
}

AOTITorchError RandintLowOut(Case& c) {
  const Sizes& size = c.List(c.Shape(0, 5));
  const Handle out = c.Out(ScalarType::kInt64, size.size() > 5 ? Sizes{} : c.Shape(0, 3));
  // Usually of other sizes; sometimes these are the right ones.
  if (c.random.Chance(0.7)) {
    std::int64_t* sizes = nullptr;
    std::int64_t rank = 0;
    aoti_torch_get_sizes(out, &sizes);
    aoti_torch_get_dim(out, &rank);
    return aoti_torch_cpu_randint_low_out(out, c.Int(-100, 0), c.Int(1, 100), sizes, rank);
  }
  return aoti_torch_cpu_randint_low_out(out, c.Int(-100, 0), c.Int(1, 100), size.data(),
                                        std::ssize(size));
}

AOTITorchError RandintLike(Case& c) {
  const Handle self = c.In(c.RealType(), c.Shape(0, 5));
  return aoti_torch_cpu_randint_like(self, c.Int(1, 100), Type(c, ScalarType::kInt64), nullptr,
                                     nullptr, 0, nullptr, nullptr, c.Result());
}

AOTITorchError RandintLikeLow(Case& c) {
  const Handle self = c.In(c.IntegerType(), c.Shape(0, 5));
  return aoti_torch_cpu_randint_like_low_dtype(self, c.Int(0, 9), c.Int(10, 100), nullptr, nullptr,
                                               nullptr, 0, nullptr, nullptr, c.Result());
}

AOTITorchError Randperm(Case& c) {
  return aoti_torch_cpu_randperm(c.Int(0, 1000), Type(c, c.IntegerType()), nullptr, nullptr, 0,
                                 nullptr, c.Result());
}

AOTITorchError BernoulliTensor(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.Out(c.RealType(), shape);
  const Handle p = c.In(c.FloatType(), c.random.Chance(0.5) ? Sizes{} : shape);
  if (!c.Wrong()) aoti_torch_zero_(p);
  return aoti_torch_cpu_bernoulli__Tensor(self, p, nullptr);
}

AOTITorchError BernoulliFloat(Case& c) {
  const Handle self = c.Out(c.RealType(), c.Shape(0, 5));
  return aoti_torch_cpu_bernoulli__float(self, c.Wrong() ? c.Real() : c.random.Unit(), nullptr);
}

AOTITorchError Exponential(Case& c) {
  const Handle self = c.In(c.FloatType(), c.Shape(0, 5));
  return aoti_torch_cpu_exponential(self, c.Wrong() ? c.Real() : 0.5, nullptr, c.Result());
}

AOTITorchError Normal(Case& c) {
  const Handle self = c.In(c.FloatType(), c.Shape(0, 5));
  return aoti_torch_cpu_normal_functional(self, c.Real(), c.Wrong() ? c.Real() : 0.5, nullptr,
                                          c.Result());
}

AOTITorchError Uniform(Case& c) {
  const Handle self = c.In(c.FloatType(), c.Shape(0, 5));
  const double low = c.Real();
  return aoti_torch_cpu_uniform(self, low, c.Wrong() ? c.Real() : low + 1, nullptr, c.Result());
}

AOTITorchError NativeDropout(Case& c) {
  const Handle self = c.In(c.FloatType(), c.Shape(0, 5));
  return aoti_torch_cpu_native_dropout(self, c.Wrong() ? c.Real() : c.random.Unit(),
                                       c.Maybe(c.Flag()), c.Result(), c.Result());
}

constexpr Op kOps[] = {
    {"rand", New<aoti_torch_cpu_rand>},
    {"randn", New<aoti_torch_cpu_randn>},
    {"rand.generator", NewWithGenerator<aoti_torch_cpu_rand_generator>},
    {"randn.generator", NewWithGenerator<aoti_torch_cpu_randn_generator>},
    {"rand_like", Like<aoti_torch_cpu_rand_like>},
    {"randn_like", Like<aoti_torch_cpu_randn_like>},
    {"rand_like.generator", LikeWithGenerator<aoti_torch_cpu_rand_like_generator>},
    {"randn_like.generator", LikeWithGenerator<aoti_torch_cpu_randn_like_generator>},
    {"randint", Randint},
    {"randint.generator", RandintGenerator},
    {"randint.low", RandintLow},
    {"randint.low_out", RandintLowOut},
    {"randint_like", RandintLike},
    {"randint_like.low_dtype", RandintLikeLow},
    {"randperm", Randperm},
    {"bernoulli_.Tensor", BernoulliTensor},
    {"bernoulli_.float", BernoulliFloat},
    {"exponential", Exponential},
    {"normal_functional", Normal},
    {"uniform", Uniform},
    {"native_dropout", NativeDropout},
};

}  // namespace

std::span<const Op> RandomOps() { return kOps; }

}  // namespace aoti::slim::fuzz
