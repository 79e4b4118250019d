#include "vec_avx512.h"

#include "attention.h"
#include "blocks.h"
#include "keys.h"
#include "router.h"
#include "rows.h"

const mr_rows moerack_rows_avx512 = {attention, rmsnorm, add_rmsnorm, rope, combine, add, all_finite, route, attend_keys, block_max, block_sum_exp};
