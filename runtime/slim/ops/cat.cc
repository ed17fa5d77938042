// cat and pad.

#include <algorithm>
#include <string_view>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/pointwise.h"

namespace aoti::slim {
namespace {

// Whether a tensor is channels last but not also contiguous: dim 1 is the innermost of 4 or 5.
bool IsChannelsLast(const Tensor& tensor) {
  if ((tensor.rank() != 4 && tensor.rank() != 5) || tensor.is_contiguous()) return false;
  std::int64_t next = 1;
  const auto fits = [&](std::int64_t d) {
    if (tensor.size(d) == 1) return true;
    const bool here = tensor.stride(d) == next;
    next *= tensor.size(d);
    return here;
  };
  if (!fits(1)) return false;
  for (std::int64_t d = tensor.rank() - 1; d >= 2; --d) {
    if (!fits(d)) return false;
  }
  return fits(0);
}

TensorPtr EmptyChannelsLast(ScalarType dtype, Ints sizes) {
  Shape strides(sizes);
  std::int64_t next = 1;
  const auto place = [&](std::size_t d) {
    strides[d] = next;
    next *= std::max<std::int64_t>(sizes[d], 1);
  };
  place(1);
  for (std::size_t d = sizes.size() - 1; d >= 2; --d) place(d);
  place(0);
  return EmptyStrided(dtype, sizes, strides);
}

// A view of a part of `out` along `dim`.
TensorPtr Part(const Tensor& out, std::int64_t dim, std::int64_t first, std::int64_t size) {
  return View(out, SizesWith(out.sizes(), dim, size), out.strides(),
              out.offset() + first * StrideAt(out, dim));
}

TensorPtr Cat(const AtenTensorHandle* tensors, std::int64_t count, std::int64_t dim) {
  Require(count > 0, "cat: there are no tensors");
  // Empty tensors with one dim are ignored, whatever the sizes of the others.
  const auto skipped = [](const Tensor& tensor) {
    return tensor.rank() == 1 && tensor.size(0) == 0;
  };
  const Tensor* model = tensors[0];
  ScalarType dtype = tensors[0]->dtype();
  for (std::int64_t i = 0; i < count; ++i) {
    if (skipped(*model)) model = tensors[i];
    dtype = Promote(dtype, tensors[i]->dtype());
  }
  Require(model->rank() > 0, "cat: scalars can't be concatenated");
  dim = WrapDim(dim, model->rank());
  std::int64_t total = 0;
  bool channels_last = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor& tensor = *tensors[i];
    if (skipped(tensor)) continue;
    Require(tensor.rank() == model->rank(), "cat: a tensor has ", tensor.rank(), " dims, another ",
            model->rank());
    for (std::int64_t d = 0; d < tensor.rank(); ++d) {
      Require(d == dim || tensor.size(d) == model->size(d), "cat: a tensor is of size ",
              tensor.size(d), " in dim ", d, ", another of size ", model->size(d));
    }
    total += tensor.size(dim);
    channels_last = channels_last && IsChannelsLast(tensor);
  }
  const SizesWith sizes(model->sizes(), dim, total);
  TensorPtr out = channels_last && IsChannelsLast(*model) ? EmptyChannelsLast(dtype, sizes)
                                                          : Empty(dtype, sizes);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (skipped(*tensors[i])) continue;
    Copy(*Part(*out, dim, at, tensors[i]->size(dim)), *tensors[i]);
    at += tensors[i]->size(dim);
  }
  return out;
}

enum class PadMode { kReflect, kReplicate, kCircular };

// The position in 0..size whose element belongs at `at`, which may lie outside.
std::int64_t Mirrored(std::int64_t at, std::int64_t size, PadMode mode) {
  switch (mode) {
    case PadMode::kReplicate:
      return std::clamp<std::int64_t>(at, 0, size - 1);
    case PadMode::kCircular:
      return at < 0 ? at + size : at >= size ? at - size : at;
    default:
      return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
  }
}

// Fills the padding of `out` along `dim` from the elements in the middle.
void FillAround(const Tensor& out, std::int64_t dim, std::int64_t before, std::int64_t size,
                PadMode mode) {
  for (std::int64_t i = 0; i < out.size(dim); ++i) {
    if (i >= before && i < before + size) continue;
    const std::int64_t mirrored = Mirrored(i - before, size, mode);
    // If the padding of the other side is negative, fewer elements may be left than this side
    // needs.
    Require(mirrored >= 0 && mirrored < size, "pad: dim ", dim, " has ", size,
            " elements left, too few for its paddings");
    const std::int64_t from = before + mirrored;
    Copy(*Part(out, dim, i, 1), *Part(out, dim, from, 1));
  }
}

void RequirePadding(std::int64_t padding, std::int64_t size, PadMode mode, std::int64_t dim) {
  if (mode == PadMode::kReflect) {
    Require(padding < size, "pad: reflect needs a padding smaller than dim ", dim, " of size ",
            size, ", not ", padding);
  } else if (mode == PadMode::kCircular) {
    Require(padding <= size, "pad: circular needs a padding of at most the size of dim ", dim, ", ",
            size, ", not ", padding);
  } else {
    Require(size > 0, "pad: dim ", dim, " is empty");
  }
}

// pads: the padding before and after each dim, beginning with the last dim.
TensorPtr Pad(const Tensor& self, Ints pads, std::string_view mode, const double* value) {
  const std::int64_t rank = self.rank();
  const auto padded = static_cast<std::int64_t>(pads.size() / 2);
  Require(pads.size() % 2 == 0 && padded <= rank, "pad: ", pads.size(),
          " numbers, must be two for each of at most ", rank, " dims");
  const bool constant = mode == "constant";
  const PadMode kind = mode == "reflect"     ? PadMode::kReflect
                       : mode == "replicate" ? PadMode::kReplicate
                                             : PadMode::kCircular;
  Require(constant || mode == "reflect" || mode == "replicate" || mode == "circular",
          "pad: mode \"", mode, "\" is not known");
  Shape sizes(self.sizes());
  for (std::int64_t i = 0; i < padded; ++i) {
    const std::int64_t dim = rank - 1 - i;
    for (int side = 0; side < 2; ++side) {
      const std::int64_t padding = pads[static_cast<std::size_t>(2 * i + side)];
      Require(padding >= -self.size(dim), "pad: ", padding, " removes more elements than dim ", dim,
              " has");
      if (!constant) RequirePadding(padding, self.size(dim), kind, dim);
      std::int64_t& size = sizes[static_cast<std::size_t>(dim)];
      size = CheckedSum(size, padding);
    }
    Require(sizes[static_cast<std::size_t>(dim)] >= 0, "pad: dim ", dim, " would be of size ",
            sizes[static_cast<std::size_t>(dim)]);
  }
  TensorPtr out =
      IsChannelsLast(self) ? EmptyChannelsLast(self.dtype(), sizes) : Empty(self.dtype(), sizes);
  // The position of self's elements in the result; negative padding removes some of them.
  TensorPtr middle(new Tensor(*out)), source(new Tensor(self));
  for (std::int64_t i = 0; i < padded; ++i) {
    const std::int64_t dim = rank - 1 - i;
    const std::int64_t before = pads[static_cast<std::size_t>(2 * i)];
    const std::int64_t after = pads[static_cast<std::size_t>(2 * i + 1)];
    const std::int64_t kept =
        self.size(dim) + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0);
    source =
        Part(*source, dim, std::max<std::int64_t>(-before, 0), std::max<std::int64_t>(kept, 0));
    middle = Part(*middle, dim, std::max<std::int64_t>(before, 0), std::max<std::int64_t>(kept, 0));
  }
  if (constant) Copy(*out, *FromDouble(value == nullptr ? 0 : *value, self.dtype()));
  Copy(*middle, *source);
  if (constant || out->numel() == 0) return out;
  // One dim after the other; each step reads what the previous steps have filled.
  for (std::int64_t i = padded - 1; i >= 0; --i) {
    const std::int64_t dim = rank - 1 - i;
    TensorPtr complete(new Tensor(*out));
    for (std::int64_t j = 0; j < i; ++j) {
      const std::int64_t open = rank - 1 - j;
      const std::int64_t before = std::max<std::int64_t>(pads[static_cast<std::size_t>(2 * j)], 0);
      complete = Part(*complete, open, before, middle->size(open));
    }
    const std::int64_t before = pads[static_cast<std::size_t>(2 * i)];
    FillAround(*complete, dim, std::max<std::int64_t>(before, 0), middle->size(dim), kind);
  }
  return out;
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_cat(const AtenTensorHandle* tensors, int64_t tensors_len_,
                                  int64_t dim, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Cat(tensors, tensors_len_, dim).release(); });
}

AOTITorchError aoti_torch_cpu_pad(AtenTensorHandle self, const int64_t* pad, int64_t pad_len_,
                                  const char* mode, double* value, AtenTensorHandle* ret0) {
  return Guarded([&] {
    const aoti::slim::Ints pads(pad, static_cast<std::size_t>(pad_len_));
    *ret0 = aoti::slim::Pad(*self, pads, mode, value).release();
  });
}

}  // extern "C"
