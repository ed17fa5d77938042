// Uses AVX2 without asking for it.

#include <immintrin.h>

#include <cstdio>

int main(int argc, char**) {
  const __m256i doubled = _mm256_slli_epi32(_mm256_set1_epi32(argc), 1);
  std::printf("ran: %d\n", _mm256_extract_epi32(doubled, 3));
}
