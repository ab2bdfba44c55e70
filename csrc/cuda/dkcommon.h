// dkcommon.h has what the kernels share: lanes that form groups, rows of four values,
// the epilogue. Included by dkernel.h.

// DK_CHUNK edges at most are summed by one block; rows with more edges than DK_LONG
// are cut into chunks (spmm.cu, README.md).
#define DK_CHUNK 2048
#define DK_LONG 4096
// DK_WIDE edges make a row worth a whole warp where its columns need less.
#define DK_WIDE 32

// dk_group_mask names the lanes of this thread's group of n neighbours, n a power of
// two up to 32.
DK_FN uint32_t dk_group_mask(int32_t n)
{
	if (n == 32)
		return 0xffffffffu;
	return ((1u << n) - 1u) << (dk_lane() & ~(n - 1));
}

// dk_group_sum adds up v over the group, in a fixed order; all lanes get the sum.
DK_FN float dk_group_sum(uint32_t mask, int32_t n, float v)
{
	for (int32_t d = n >> 1; d > 0; d >>= 1)
		v += dk_shfl_xor(mask, v, d);
	return v;
}

// dk_max is the larger, a NaN counting as larger than all numbers.
DK_FN float dk_max(float a, float b) { return a > b || a != a ? a : b; }

DK_FN float dk_group_max(uint32_t mask, int32_t n, float v)
{
	for (int32_t d = n >> 1; d > 0; d >>= 1)
		v = dk_max(v, dk_shfl_xor(mask, v, d));
	return v;
}

// dk_vec<V> is V neighbouring columns of a row of float or bfloat16. load leaves 0,
// and store writes nothing, from column n-c on.
template <int V> struct dk_vec {
	float v[V];
};

template <int V> DK_FN dk_vec<V> dk_fill(float f)
{
	dk_vec<V> r;
DK_UNROLL
	for (int i = 0; i < V; i++)
		r.v[i] = f;
	return r;
}

DK_FN float dk_load1(const float *p) { return dk_ldg(p); }
DK_FN float dk_load1(const uint16_t *p) { return dk_bf2f(dk_ldg(p)); }

DK_FN dk_vec<4> dk_load4(const float *p)
{
	dk_f4 f = dk_ldg((const dk_f4 *)p);
	dk_vec<4> r;
	r.v[0] = f.x;
	r.v[1] = f.y;
	r.v[2] = f.z;
	r.v[3] = f.w;
	return r;
}
DK_FN dk_vec<4> dk_load4(const uint16_t *p)
{
	uint64_t u = (uint64_t)dk_ldg((const int64_t *)p);
	dk_vec<4> r;
	r.v[0] = dk_bf2f((uint16_t)u);
	r.v[1] = dk_bf2f((uint16_t)(u >> 16));
	r.v[2] = dk_bf2f((uint16_t)(u >> 32));
	r.v[3] = dk_bf2f((uint16_t)(u >> 48));
	return r;
}

// dk_load reads columns [c,c+V) of the row at p, of which there are n.
template <int V, class T> DK_FN dk_vec<V> dk_load(const T *p, int32_t c, int32_t n)
{
	if constexpr (V == 4) {
		if (c + 4 <= n)
			return dk_load4(p + c);
	}
	dk_vec<V> r;
DK_UNROLL
	for (int i = 0; i < V; i++)
		r.v[i] = c + i < n ? dk_load1(p + c + i) : 0.0f;
	return r;
}

template <int V> DK_FN void dk_store(float *p, int32_t c, int32_t n, const dk_vec<V> &a)
{
	if constexpr (V == 4) {
		if (c + 4 <= n) {
			*(dk_f4 *)(p + c) = dk_f4{a.v[0], a.v[1], a.v[2], a.v[3]};
			return;
		}
	}
DK_UNROLL
	for (int i = 0; i < V; i++)
		if (c + i < n)
			p[c + i] = a.v[i];
}

template <int V> DK_FN void dk_axpy(dk_vec<V> &acc, float f, const dk_vec<V> &x)
{
DK_UNROLL
	for (int i = 0; i < V; i++)
		acc.v[i] = dk_fma(f, x.v[i], acc.v[i]);
}

// The epilogue dst = drop(act(x + bias)), as the last arguments of a kernel. bias is
// null for none; mode is the Act in its low 8 bits, and DK_DROP if there is dropout, and
// from bit DK_FIRST on the column of the whole row that column 0 is, for the dropout of a
// gather that runs on some columns of its output; ids is indexed by the row of the
// output, null for the row itself.
#define DK_DROP 256
#define DK_FIRST 9
#define DK_EPI const float *bias, int32_t mode, const int32_t *ids, uint64_t key, uint64_t threshold, float keep
#define DK_EPI_PASS (dk_epi{bias, ids, key, (uint32_t)threshold, mode, keep})

struct dk_epi {
	const float *bias;
	const int32_t *ids;
	uint64_t key;
	uint32_t threshold;
	int32_t mode;
	float keep;
};

enum { DK_IDENTITY, DK_RELU, DK_LEAKY, DK_ELU, DK_TANH };

DK_FN float dk_act(int32_t mode, float x)
{
	switch (mode & 255) {
	case DK_RELU:
		return x <= 0 ? 0 : x;
	case DK_LEAKY:
		return x <= 0 ? 0.2f * x : x;
	case DK_ELU:
		return x <= 0 ? dk_expm1(x) : x;
	case DK_TANH:
		return dk_tanh(x);
	}
	return x;
}

// dk_slope is act' in terms of the value a that act gave.
DK_FN float dk_slope(int32_t mode, float a, float d)
{
	switch (mode & 255) {
	case DK_RELU:
		return a <= 0 ? 0 : d;
	case DK_LEAKY:
		return a <= 0 ? 0.2f * d : d;
	case DK_ELU:
		return a <= 0 ? d * (a + 1) : d;
	case DK_TANH:
		return d * dk_fma(-a, a, 1.0f);
	}
	return d;
}

// dk_mask is the part of the dropout mask that the values of row r share.
DK_FN uint64_t dk_mask(const dk_epi &e, int64_t r)
{
	if (!(e.mode & DK_DROP))
		return 0;
	return dk_drop_row(e.key, e.ids ? dk_ldg(e.ids + r) : (int32_t)r);
}

DK_FN float dk_finish1(const dk_epi &e, uint64_t row, int32_t c, float x)
{
	if (e.bias)
		x += dk_ldg(e.bias + c);
	x = dk_act(e.mode, x);
	if (e.mode & DK_DROP)
		x = dk_drop_keep(row, (uint32_t)(c + (e.mode >> DK_FIRST)), e.threshold) ? x * e.keep : 0;
	return x;
}

template <int V> DK_FN void dk_finish(const dk_epi &e, int64_t r, int32_t c, int32_t n, dk_vec<V> &a)
{
	if (!e.bias && !e.mode)
		return;
	uint64_t row = dk_mask(e, r);
DK_UNROLL
	for (int i = 0; i < V; i++)
		if (c + i < n)
			a.v[i] = dk_finish1(e, row, c + i, a.v[i]);
}

// dk_rows gives each thread its elements of a matrix, in the mapping of all
// elementwise kernels: 1<<shift neighbouring threads share a row, and f(r, c) is
// called for the thread's columns.
template <class F> DK_FN void dk_each(int64_t rows, int32_t cols, int32_t shift, F f)
{
	int32_t lanes = 1 << shift;
	int64_t step = ((int64_t)dk_gdim() * dk_bdim()) >> shift;
	for (int64_t r = ((int64_t)dk_bid() * dk_bdim() + dk_tid()) >> shift; r < rows; r += step)
		for (int32_t c = dk_tid() & (lanes - 1); c < cols; c += lanes)
			f(r, c);
}

// dk_row_of is the row that edge e of a CSR lies in: the last r in [lo,hi) with
// rowptr[r] <= e.
DK_FN int64_t dk_row_of(const int64_t *rowptr, int64_t lo, int64_t hi, int64_t e)
{
	while (hi - lo > 1) {
		int64_t mid = lo + (hi - lo) / 2;
		if (dk_ldg(rowptr + mid) <= e)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}
