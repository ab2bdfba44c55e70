// check.h: a driver opened at run time, arrays on the device, launches, comparisons.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

struct Driver {
	void *lib = nullptr, *module = nullptr, *stream = nullptr;
	template <class F> F *fn(const char *name)
	{
		void *p = dlsym(lib, name);
		if (!p)
			fail(name, -1);
		return reinterpret_cast<F *>(p);
	}
	[[noreturn]] void fail(const char *what, int rc)
	{
		fprintf(stderr, "%s: status %d\n", what, rc);
		exit(2);
	}
	template <class F, class... A> void call(const char *name, A... a)
	{
		int rc = fn<F>(name)(a...);
		if (rc)
			fail(name, rc);
	}
	void open(const char *path, const std::string &ptx)
	{
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!lib) {
			fprintf(stderr, "%s\n", dlerror());
			exit(2);
		}
		void *ctx = nullptr;
		call<int(unsigned)>("cuInit", 0u);
		call<int(void **, int)>("cuDevicePrimaryCtxRetain", &ctx, 0);
		call<int(void *)>("cuCtxSetCurrent", ctx);
		call<int(void **, const void *)>("cuModuleLoadData", &module, (const void *)ptx.c_str());
		call<int(void **, unsigned)>("cuStreamCreate", &stream, 1u);
	}
	uint64_t alloc(size_t bytes)
	{
		uint64_t p = 0;
		call<int(uint64_t *, size_t)>("cuMemAlloc_v2", &p, bytes ? bytes : 4);
		return p;
	}
	void free(uint64_t p) { call<int(uint64_t)>("cuMemFree_v2", p); }
	void up(uint64_t p, const void *h, size_t n)
	{
		if (n)
			call<int(uint64_t, const void *, size_t)>("cuMemcpyHtoD_v2", p, h, n);
	}
	void down(void *h, uint64_t p, size_t n)
	{
		if (n)
			call<int(void *, uint64_t, size_t)>("cuMemcpyDtoH_v2", h, p, n);
	}
	void wait() { call<int(void *)>("cuStreamSynchronize", stream); }
};
inline Driver drv;
inline int failed = 0, passed = 0;
inline std::string only;

template <class T> struct Dev {
	uint64_t p = 0;
	std::vector<T> h;
	Dev() = default;
	explicit Dev(std::vector<T> v) : h(std::move(v))
	{
		p = drv.alloc(h.size() * sizeof(T));
		drv.up(p, h.data(), h.size() * sizeof(T));
	}
	Dev(const Dev &) = delete;
	Dev(Dev &&o) : p(o.p), h(std::move(o.h)) { o.p = 0; }
	~Dev()
	{
		if (p)
			drv.free(p);
	}
	const std::vector<T> &get()
	{
		drv.wait();
		drv.down(h.data(), p, h.size() * sizeof(T));
		return h;
	}
};

// Box is one argument in its 8 bytes.
struct Box {
	uint64_t v = 0;
	template <class T> Box(const Dev<T> &d) : v(d.p) {}
	Box(std::nullptr_t) {}
	Box(float f) { memcpy(&v, &f, 4); }
	template <class T, class = std::enable_if_t<std::is_integral_v<T>>> Box(T i)
	{
		int64_t w = (int64_t)i;
		memcpy(&v, &w, 8);
	}
};

inline std::vector<Box> operator+(std::vector<Box> a, const std::vector<Box> &b)
{
	a.insert(a.end(), b.begin(), b.end());
	return a;
}

inline void launch(const char *name, int64_t grid, std::vector<Box> args)
{
	void *fn = nullptr;
	if (int rc = drv.fn<int(void **, void *, const char *)>("cuModuleGetFunction")(&fn, drv.module, name))
		drv.fail(name, rc);
	std::vector<void *> ptr;
	for (auto &b : args)
		ptr.push_back(&b.v);
	int rc = drv.fn<int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)>(
		"cuLaunchKernel")(fn, (unsigned)grid, 1, 1, 256, 1, 1, 0, drv.stream, ptr.data(), nullptr);
	if (rc)
		drv.fail(name, rc);
	rc = drv.fn<int(void *)>("cuStreamSynchronize")(drv.stream);
	if (rc)
		drv.fail(name, rc);
}

inline std::mt19937_64 rng(1);
inline float uniform(float lo = -1, float hi = 1) { return std::uniform_real_distribution<float>(lo, hi)(rng); }
inline int64_t below(int64_t n) { return (int64_t)(rng() % (uint64_t)n); }

// Mat is a matrix with NaN in its padding.
struct Mat {
	int64_t rows, ld;
	int cols;
	Dev<float> d;
	Mat(int64_t r, int c, bool aligned, std::function<float()> f = [] { return uniform(); })
		: rows(r), ld(aligned ? (c + 15) / 16 * 16 : c), cols(c), d(std::vector<float>((size_t)(r * (aligned ? (c + 15) / 16 * 16 : c)), NAN))
	{
		for (int64_t i = 0; i < r; i++)
			for (int j = 0; j < c; j++)
				d.h[(size_t)(i * ld + j)] = f();
		drv.up(d.p, d.h.data(), d.h.size() * 4);
	}
	double at(int64_t r, int64_t c) const { return d.h[(size_t)(r * ld + c)]; }
};

struct Want {
	double v, abs; // the value; the size that the tolerance refers to
};

// check compares, and that the padding is untouched.
inline void check(const std::string &what, Mat &m, std::function<Want(int64_t, int)> want, double tol = 2e-6)
{
	m.d.get();
	double worst = 0;
	std::string text;
	for (int64_t r = 0; r < m.rows; r++)
		for (int c = 0; c < m.ld; c++) {
			double got = m.at(r, c), bad = 0, w = NAN;
			if (c >= m.cols) {
				bad = std::isnan(got) ? 0 : 1e9;
			} else {
				Want x = want(r, c);
				w = x.v;
				if (std::isnan(w) || std::isinf(w))
					bad = (std::isnan(w) && std::isnan(got)) || w == got ? 0 : 1e9;
				else
					bad = std::isfinite(got) ? std::fabs(got - w) / (tol * x.abs + 1e-30) : 1e9;
				if (got == w)
					bad = 0;
			}
			if (bad > worst) {
				worst = bad;
				text = "[" + std::to_string(r) + "," + std::to_string(c) + "] is " + std::to_string(got) + ", want " + std::to_string(w);
			}
		}
	if (worst > 1) {
		failed++;
		printf("FAIL %s: %.3g tolerances at %s\n", what.c_str(), worst, text.c_str());
	} else {
		passed++;
	}
}

// The dropout of kernels/dropout.go.
inline uint64_t mix64(uint64_t z)
{
	z ^= z >> 30;
	z *= 0xbf58476d1ce4e5b9ull;
	z ^= z >> 27;
	z *= 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
inline bool keeps(uint64_t key, int32_t id, uint32_t col, uint32_t threshold)
{
	uint64_t row = mix64(key ^ ((uint64_t)(uint32_t)id + 1) * 0x9e3779b97f4a7c15ull);
	uint32_t x = col * 0x9e3779b1u + (uint32_t)row;
	x ^= x >> 16;
	x *= 0x85ebca6bu;
	x ^= (uint32_t)(row >> 32);
	x ^= x >> 13;
	x *= 0xc2b2ae35u;
	x ^= x >> 16;
	return x >= threshold;
}

// Ep is an epilogue, and its boxes.
struct Ep {
	int act = 0;
	float p = 0;
	uint64_t key = 0x1234567890abcdefull;
	Dev<float> *bias = nullptr;
	Dev<int32_t> *ids = nullptr;
	uint32_t threshold() const { return (uint32_t)std::min(std::round((double)p * 4294967296.0), 4294967295.0); }
	float keep() const { return 1 / (1 - p); }
	std::vector<Box> boxes() const
	{
		return {bias ? Box(*bias) : Box(nullptr), act | (p > 0 ? 256 : 0), ids ? Box(*ids) : Box(nullptr), key, (uint64_t)threshold(), keep()};
	}
	Want finish(Want w, int64_t r, int c) const
	{
		if (bias) {
			w.v += bias->h[(size_t)c];
			w.abs += std::fabs(bias->h[(size_t)c]);
		}
		switch (act) {
		case 1: w.v = w.v <= 0 ? 0 : w.v; break;
		case 2: w.v = w.v <= 0 ? 0.2 * w.v : w.v; break;
		case 3: w.v = w.v <= 0 ? std::expm1(w.v) : w.v; break;
		case 4: w.v = std::tanh(w.v); break;
		}
		if (p > 0)
			w.v = keeps(key, ids ? ids->h[(size_t)r] : (int32_t)r, (uint32_t)c, threshold()) ? w.v * keep() : 0, w.abs *= keep();
		w.abs += act >= 3 ? 1 : 0;
		return w;
	}
};

// Graph has rows of all kinds: empty, short, wide, long; columns ascend and may repeat.
struct Graph {
	std::vector<int64_t> rp{0};
	std::vector<int32_t> col;
	std::vector<float> val;
	int64_t rows, cols;
	Dev<int64_t> drp;
	Dev<int32_t> dcol;
	Dev<float> dval;
	Graph(int64_t r, int64_t c, std::function<int64_t(int64_t)> deg) : rows(r), cols(c)
	{
		for (int64_t v = 0; v < r; v++) {
			std::vector<int32_t> u;
			for (int64_t k = deg(v); k > 0; k--)
				u.push_back((int32_t)below(c));
			std::sort(u.begin(), u.end());
			for (auto x : u) {
				col.push_back(x);
				val.push_back(below(9) == 0 ? 0 : uniform(0, 1));
			}
			rp.push_back((int64_t)col.size());
		}
		place();
	}
	Graph(int64_t r, int64_t c) : rows(r), cols(c) {}
	void place()
	{
		drp.~Dev<int64_t>(); new (&drp) Dev<int64_t>(rp);
		dcol.~Dev<int32_t>(); new (&dcol) Dev<int32_t>(col);
		dval.~Dev<float>(); new (&dval) Dev<float>(val);
	}
	// transpose, and where its edges lie in this graph
	std::pair<std::unique_ptr<Graph>, std::vector<int64_t>> transpose() const
	{
		std::unique_ptr<Graph> t(new Graph(cols, rows));
		std::vector<std::vector<std::pair<int32_t, int64_t>>> in((size_t)cols);
		for (int64_t v = 0; v < rows; v++)
			for (int64_t e = rp[(size_t)v]; e < rp[(size_t)v + 1]; e++)
				in[(size_t)col[(size_t)e]].push_back({(int32_t)v, e});
		std::vector<int64_t> perm;
		for (auto &l : in) {
			for (auto &x : l) {
				t->col.push_back(x.first);
				t->val.push_back(val[(size_t)x.second]);
				perm.push_back(x.second);
			}
			t->rp.push_back((int64_t)t->col.size());
		}
		t->place();
		return {std::move(t), perm};
	}
	// rows of at least `least` edges, and how many chunks lie before each
	std::pair<std::vector<int32_t>, std::vector<int64_t>> chunks(int64_t least, int64_t size) const
	{
		std::vector<int32_t> list;
		std::vector<int64_t> start{0};
		for (int64_t v = 0; v < rows; v++) {
			int64_t n = rp[(size_t)v + 1] - rp[(size_t)v];
			if (n < least)
				continue;
			list.push_back((int32_t)v);
			start.push_back(start.back() + (n + size - 1) / size);
		}
		return {list, start};
	}
};
