"""Changes to torch's headers for the compilation of generated programs and of custom operators.

Only the copy for C++ is changed, never the package. If the text to be changed is not found, it is
an error: a change must be reviewed for another version of torch.
"""

from __future__ import annotations

# std::regex only parses three words here, but takes longer to compile than the rest of a small
# program.
_DEVICE = (
    """\
  std::regex re("(cpu|cuda|xpu|mps)(:([0-9]+))?");
  std::smatch sm;
  bool matched = std::regex_match(device_str, sm, re);
  AOTI_RUNTIME_CHECK(matched, "Invalid device: " + device_str);

  if (sm[1].str() == "cpu") {
    device_type = aoti_torch_device_type_cpu();
  } else if (sm[1].str() == "cuda") {
    device_type = aoti_torch_device_type_cuda();
#ifdef USE_XPU
  } else if (sm[1].str() == "xpu") {
    device_type = aoti_torch_device_type_xpu();
#endif
#ifdef USE_MPS
  } else if (sm[1].str() == "mps") {
    device_type = aoti_torch_device_type_mps();
#endif
  } else {
    AOTI_RUNTIME_CHECK(false, "Invalid device: " + device_str);
  }

  if (sm[3].matched) {
    device_idx = stoi(sm[3].str());
  } else {
    device_idx = -1;
  }
""",
    """\
  const std::size_t colon = device_str.find(':');
  const std::string kind = device_str.substr(0, colon);
  const std::string index =
      colon == std::string::npos ? std::string("-1") : device_str.substr(colon + 1);
  AOTI_RUNTIME_CHECK(
      colon == std::string::npos ||
          (!index.empty() &&
           index.find_first_not_of("0123456789") == std::string::npos),
      "Invalid device: " + device_str);
  if (kind == "cpu") {
    device_type = aoti_torch_device_type_cpu();
  } else if (kind == "cuda") {
    device_type = aoti_torch_device_type_cuda();
#ifdef USE_XPU
  } else if (kind == "xpu") {
    device_type = aoti_torch_device_type_xpu();
#endif
#ifdef USE_MPS
  } else if (kind == "mps") {
    device_type = aoti_torch_device_type_mps();
#endif
  } else {
    AOTI_RUNTIME_CHECK(false, "Invalid device: " + device_str);
  }
  device_idx = stoi(index);
""",
)

# The program would fill this table before main(), with code for the kernels' instruction set: on a
# CPU without it, the process would end before it could report an error. The new table is a
# constant.
_RECIPROCALS_DECLARED = (
    "  static std::vector<typename GetScalarType<T>::type> weight_recps;\n",
    """\
  static constexpr auto weight_recps = [] {
    using scalar_t = typename GetScalarType<T>::type;
    std::array<scalar_t, kChunkSize> table{};
    for (uint64_t i = 0; i < kChunkSize; ++i) {
      table[i] = scalar_t(static_cast<double>(1) / static_cast<double>(i + 1));
    }
    return table;
  }();
""",
)
_RECIPROCALS_DEFINED = (
    """\
template <typename T, uint64_t kChunkSize>
std::vector<typename GetScalarType<T>::type>
    WelfordHelper<T, kChunkSize>::weight_recps = []() {
      using scalar_t = typename GetScalarType<T>::type;
      std::vector<scalar_t> temp(kChunkSize);
      for (const auto i : c10::irange(kChunkSize)) {
        temp[i] = scalar_t(static_cast<double>(1) / static_cast<double>(i + 1));
      }
      return temp;
    }();

""",
    "",
)

# Kernels use the runtime's own threads; compilers other than gcc need not provide the header.
_OPENMP = ("#include <omp.h>\n", "#ifdef _OPENMP\n#include <omp.h>\n#endif\n")

# Each call of an operator with a text among its arguments would leave a copy of it in memory.
_TEXT = (
    "    auto strptr = new std::string(data, length);\n",
    "    std::string text(data, length);\n",
)
_TEXT_RETURNED = ("    return *strptr;\n", "    return text;\n")

# header: pairs of the text to be replaced, which occurs once, and its replacement
PATCHES: dict[str, tuple[tuple[str, str], ...]] = {
    "torch/csrc/inductor/aoti_runtime/model_base.h": (
        ("#include <regex>\n", "#include <functional>\n#include <string>\n"),
        _DEVICE,
    ),
    "torch/csrc/inductor/cpp_prefix.h": (
        _OPENMP,
        ("#include <algorithm>\n", "#include <algorithm>\n#include <array>\n"),
        _RECIPROCALS_DECLARED,
        _RECIPROCALS_DEFINED,
    ),
    "torch/csrc/stable/stableivalue_conversions.h": (_TEXT, _TEXT_RETURNED),
}


class PatchError(Exception):
    """A header that differs from the one that a change was written for."""


def patched(header: str, text: str) -> str:
    """The header's text with its changes.

    Raises PatchError if a change does not apply, or applies in several places.
    """
    for old, new in PATCHES.get(header, ()):
        if text.count(old) != 1:
            raise PatchError(f"{header}: expected once, found {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    return text
