// Matrix products and quantized linear layers.

#include "runtime/slim/tests/fuzz_case.h"

// As generated code declares it.
extern "C" AOTITorchError aoti_slim_int8_product(AtenTensorHandle a, AtenTensorHandle weight,
                                                 AtenTensorHandle steps, AtenTensorHandle scales,
                                                 AtenTensorHandle bias, std::int32_t activation,
                                                 AtenTensorHandle* ret0);

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

AOTITorchError Int8Product(Case& c) {
  const Product p(c);
  const std::int64_t m = c.random.Chance(0.2) ? 40 : p.m;
  const Handle a = c.In(ScalarType::kInt8, {m, p.k});
  const Handle weight = c.In(ScalarType::kInt8, {p.n, p.k});
  const Handle steps = c.In(ScalarType::kFloat32, {m, 1});
  const Handle scales = c.In(ScalarType::kFloat32, {p.n});
  const Handle bias = c.random.Chance(0.4) ? nullptr : c.In(ScalarType::kFloat32, {p.n});
  return aoti_slim_int8_product(a, weight, steps, scales, bias,
                                static_cast<std::int32_t>(c.Int(0, 2)), c.Result());
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

AOTITorchError GroupedMm(Case& c) {
  const Product p(c);
  const bool a_batch = c.random.Chance(0.4), b_batch = c.random.Chance(0.7);
  const Handle a = c.In(p.type, a_batch ? Sizes{p.batch, p.m, p.k} : Sizes{p.m, p.k});
  const Handle b = c.In(p.type, b_batch ? Sizes{p.batch, p.k, p.n} : Sizes{p.k, p.n});
  Handle* offsets = nullptr;
  if (!(a_batch && b_batch)) {
    const std::int64_t size = a_batch ? p.n : b_batch ? p.m : p.k;
    offsets = c.Keep(c.Index(ScalarType::kInt32, {p.batch}, size, size + 1));
    if (c.random.Chance(0.5)) offsets = c.Keep(c.Index(ScalarType::kInt32, {p.batch}, 0, size + 1));
  }
  return aoti_torch_cpu__grouped_mm(a, b, offsets, nullptr, nullptr, c.Result());
}

// A multiple of 32 that divides k, or k itself.
std::int64_t GroupOf(Case& c, std::int64_t k) {
  return k % 32 == 0 && c.random.Chance(0.5) ? 32 : k;
}

AOTITorchError DynQuantPack4bitWeight(Case& c) {
  const std::int64_t k = 2 * c.random.Range(1, 64), n = c.Size(), group = GroupOf(c, k);
  const Handle weight = c.In(ScalarType::kUInt8, {n, k / 2});
  const Handle scales = c.In(c.FloatType(), {n, k / group});
  return aoti_torch_cpu__dyn_quant_pack_4bit_weight(
      weight, scales, c.Maybe(c.In(ScalarType::kFloat32, {n})), c.Int(group, group), c.Int(k, k),
      c.Int(n, n), c.Result());
}

AOTITorchError DynQuantMatmul4bit(Case& c) {
  const std::int64_t k = 2 * c.random.Range(1, 64), n = c.Size(), group = GroupOf(c, k);
  const ScalarType type = group == k ? c.random.Pick({ScalarType::kFloat32, ScalarType::kBFloat16})
                                     : ScalarType::kFloat32;
  const std::int64_t bias = c.random.Chance(0.5) ? n : 0;
  const Handle x = c.In(type, {c.Size(), k});
  const Handle packed = c.In(ScalarType::kFloat32, {n * (k / 2) + n * (k / group) + bias});
  return aoti_torch_cpu__dyn_quant_matmul_4bit(x, packed, c.Int(group, group), c.Int(k, k),
                                               c.Int(n, n), c.Result());
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
    {"int8_product", Int8Product},
    {"_weight_int8pack_mm", WeightInt8packMm},
    {"_grouped_mm", GroupedMm},
    {"_dyn_quant_pack_4bit_weight", DynQuantPack4bitWeight},
    {"_dyn_quant_matmul_4bit", DynQuantMatmul4bit},
    {"_trilinear", Trilinear},
    {"_cdist_forward", CdistForward},
    {"_pdist_forward", PdistForward},
};

}  // namespace

std::span<const Op> MatmulOps() { return kOps; }

}  // namespace aoti::slim::fuzz
