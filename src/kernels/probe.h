// How many products a second this machine can do at best: the denominators of shares.
#pragma once

#include "base/thread_pool.h"
#include "kernels/table.h"

namespace cadans::kernels {

/// Operations (one multiply and one add are two) a second of all threads together, with the instructions that the
/// table multiplies 4-bit weights with and nothing else in the way: the median of a few runs of some milliseconds.
/// avx512: vpdpbusd; avx2: vpmaddubsw with 16-bit sums over a block of 32; scalar: plain integers.
double measure_dot_peak(const KernelTable& table, ThreadPool& pool);

/// The same for f32: operations a second by fused multiply-add of the table's widest vectors. The denominator of
/// attention's share.
double measure_fma_peak(const KernelTable& table, ThreadPool& pool);

}  // namespace cadans::kernels
