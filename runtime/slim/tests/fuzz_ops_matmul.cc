// Matrix products and quantized linear layers.

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {
namespace {

struct Product {
  explicit Product(Case& c)
      : type(c.random.Chance(0.15) ? c.AnyType() : c.FloatType()),
        batch(c.random.Range(0, 4)),
        m(c.Size()),
        k(c.Size()),
        n(c.Size()) {}
  ScalarType type;
  std::int64_t batch, m, k, n;
};

AOTITorchError MmOut(Case& c) {
  const Product p(c);
  const Handle out = c.Out(p.type, {p.m, p.n});
  const Handle a = c.In(p.type, {p.m, p.k});
  return aoti_torch_cpu_mm_out(out, a, c.In(p.type, {p.k, p.n}));
}

AOTITorchError AddmmOut(Case& c) {
  const Product p(c);
  const Handle out = c.Out(p.type, {p.m, p.n});
  const Handle self = c.In(p.type, c.Broadcastable({p.m, p.n}));
  const Handle a = c.In(p.type, {p.m, p.k});
  return aoti_torch_cpu_addmm_out(out, self, a, c.In(p.type, {p.k, p.n}), c.Real(), c.Real());
}

AOTITorchError AddmmActivation(Case& c) {
  const Product p(c);
  const Handle self = c.In(p.type, c.Broadcastable({p.m, p.n}));
  const Handle a = c.In(p.type, {p.m, p.k});
  return aoti_torch_cpu__addmm_activation(self, a, c.In(p.type, {p.k, p.n}), c.Real(), c.Real(),
                                          c.Flag(), c.Result());
}

AOTITorchError BmmOut(Case& c) {
  const Product p(c);
  const Handle out = c.Out(p.type, {p.batch, p.m, p.n});
  const Handle a = c.In(p.type, {p.batch, p.m, p.k});
  return aoti_torch_cpu_bmm_out(out, a, c.In(p.type, {p.batch, p.k, p.n}));
}

AOTITorchError BaddbmmOut(Case& c) {
  const Product p(c);
  const Handle out = c.Out(p.type, {p.batch, p.m, p.n});
  const Handle self = c.In(p.type, c.Broadcastable({p.batch, p.m, p.n}));
  const Handle a = c.In(p.type, {p.batch, p.m, p.k});
  return aoti_torch_cpu_baddbmm_out(out, self, a, c.In(p.type, {p.batch, p.k, p.n}), c.Real(),
                                    c.Real());
}

AOTITorchError Addbmm(Case& c) {
  const Product p(c);
  const Handle self = c.In(p.type, c.Broadcastable({p.m, p.n}));
  const Handle a = c.In(p.type, {p.batch, p.m, p.k});
  return aoti_torch_cpu_addbmm(self, a, c.In(p.type, {p.batch, p.k, p.n}), c.Real(), c.Real(),
                               c.Result());
}

AOTITorchError Addmv(Case& c) {
  const Product p(c);
  const Handle self = c.In(p.type, c.Broadcastable({p.m}));
  const Handle a = c.In(p.type, {p.m, p.k});
  return aoti_torch_cpu_addmv(self, a, c.In(p.type, {p.k}), c.Real(), c.Real(), c.Result());
}

AOTITorchError MmPlusMmOut(Case& c) {
  const Product p(c);
  const Handle out = c.Out(p.type, {p.m, p.n});
  const Handle first = c.In(p.type, {p.m, p.k});
  const Handle second = c.In(p.type, {p.k, p.n});
  const std::int64_t k = c.Size();
  const Handle third = c.In(p.type, {p.m, k});
  return aoti_torch__mm_plus_mm_out(out, first, second, third, c.In(p.type, {k, p.n}));
}

AOTITorchError IntMmOut(Case& c) {
  const Product p(c);
  const Handle out = c.Out(ScalarType::kInt32, {p.m, p.n});
  const Handle a = c.In(c.random.Pick({ScalarType::kInt8, ScalarType::kUInt8}), {p.m, p.k});
  return aoti_torch_cpu__int_mm_out(out, a, c.In(ScalarType::kInt8, {p.k, p.n}));
}

AOTITorchError WeightInt8packMm(Case& c) {
  const Product p(c);
  const ScalarType type =
      c.random.Pick({ScalarType::kFloat32, ScalarType::kBFloat16, ScalarType::kFloat16});
  const Handle x = c.In(type, {p.m, p.k});
  const Handle weight = c.In(ScalarType::kInt8, {p.n, p.k});
  return aoti_torch_cpu__weight_int8pack_mm(x, weight, c.In(type, {p.n}), c.Result());
}

AOTITorchError Trilinear(Case& c) {
  // The same product as in torch.nn.Bilinear: [batch, 1, i, 1] * [1, out, i, j] * [batch, 1, 1, j].
  const Product p(c);
  const Handle first = c.In(p.type, {p.m, p.k});
  const Handle second = c.In(p.type, {p.batch, p.k, p.n});
  const Handle third = c.In(p.type, {p.m, p.n});
  const Sizes& expand1 = c.List({1, 3});
  const Sizes& expand2 = c.List({0});
  const Sizes& expand3 = c.List({1, 2});
  const Sizes& sum = c.List({2, 3});
  return aoti_torch_cpu__trilinear(first, second, third, expand1.data(), std::ssize(expand1),
                                   expand2.data(), std::ssize(expand2), expand3.data(),
                                   std::ssize(expand3), sum.data(), std::ssize(sum), c.Int(0, 3),
                                   c.Result());
}

AOTITorchError CdistForward(Case& c) {
  const Sizes batch = c.Shape(0, 2);
  const std::int64_t features = c.Size();
  Sizes first = c.Broadcastable(batch);
  Sizes second = c.Broadcastable(batch);
  first.insert(first.end(), {c.Size(), features});
  second.insert(second.end(), {c.Size(), features});
  const ScalarType type = c.FloatType();
  const double p = c.random.Pick({0.0, 1.0, 2.0, 3.5, __builtin_inf()});
  const Handle x = c.In(type, first);
  return aoti_torch_cpu__cdist_forward(x, c.In(type, second), c.Wrong() ? c.Real() : p,
                                       c.Maybe(c.Int(0, 2)), c.Result());
}

AOTITorchError PdistForward(Case& c) {
  const Handle x = c.In(c.FloatType(), {c.Size(), c.Size()});
  return aoti_torch_cpu__pdist_forward(x, c.random.Pick({0.0, 1.0, 2.0, 3.5, __builtin_inf()}),
                                       c.Result());
}

constexpr Op kOps[] = {
    {"mm_out", MmOut},
    {"addmm_out", AddmmOut},
    {"_addmm_activation", AddmmActivation},
    {"bmm_out", BmmOut},
    {"baddbmm_out", BaddbmmOut},
    {"addbmm", Addbmm},
    {"addmv", Addmv},
    {"_mm_plus_mm_out", MmPlusMmOut},
    {"_int_mm_out", IntMmOut},
    {"_weight_int8pack_mm", WeightInt8packMm},
    {"_trilinear", Trilinear},
    {"_cdist_forward", CdistForward},
    {"_pdist_forward", PdistForward},
};

}  // namespace

std::span<const Op> MatmulOps() { return kOps; }

}  // namespace aoti::slim::fuzz
