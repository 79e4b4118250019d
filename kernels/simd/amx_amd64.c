// Products with the tiles of AMX. Linux alone gives a process leave to use them.
#include "dispatch.h"

#ifdef MR_HAS_AMX
#include "vec_avx512.h"

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("amx-tile,amx-int8,amx-bf16"))), apply_to = function)
#else
#pragma GCC target("amx-tile,amx-int8,amx-bf16")
#endif

#include "amx.h"
#endif
