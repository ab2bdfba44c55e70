// check.cc runs every kernel on a driver, emulated or real, and compares it with the
// formula of the op, element by element in double.
//   usage: check DRIVER.so PTX_FILE [SEED]
#include "check.h"

using V = std::vector<Box>;
static bool units; // the module has products by matrix units, which sm_70.ptx has not
static double rowDot(const Mat &a, int64_t i, const Mat &b, int64_t j, int lo, int n, double *abs)
{
	double s = 0;
	for (int c = lo; c < lo + n; c++)
		s += a.at(i, c) * b.at(j, c), *abs += std::fabs(a.at(i, c) * b.at(j, c));
	return s;
}
static int log2of(int n)
{
	int s = 0;
	while (1 << s < n && s < 5)
		s++;
	return s;
}
static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t eachGrid(int64_t rows, int shift) { return std::max<int64_t>(1, std::min<int64_t>(7, up(rows << shift, 256))); }
static int64_t mixedDegree(int64_t v) { return v % 7 == 0 ? 0 : v == 5 ? 4096 : v == 11 ? 6145 : v % 5 == 0 ? 100 : below(30); }

static void spmm()
{
	Graph g(60, 45, mixedDegree);
	auto [list, start] = g.chunks(4096, 2048);
	Dev<int32_t> dlist(list);
	Dev<int64_t> dstart(start);
	Dev<float> rs(std::vector<float>(60, 0)), cs(std::vector<float>(45, 0)), sw(std::vector<float>(60, 0));
	for (auto *d : {&rs, &cs, &sw}) {
		for (auto &f : d->h)
			f = uniform(0.5, 1.5);
		drv.up(d->p, d->h.data(), d->h.size() * 4);
	}
	Dev<int32_t> selfcol([] { std::vector<int32_t> s; for (int i = 0; i < 60; i++) s.push_back(i % 3 ? (int32_t)below(45) : -1); return s; }());
	struct Form { const char *rows, *wide, *chunk; int G, V, S; bool aligned; };
	const Form forms[] = {{"g8", "w8", "c8", 8, 4, 4, true}, {"g16", "w16", "c16", 16, 4, 2, true}, {"g32", nullptr, "c32", 32, 4, 1, true},
			      {"s8", "ws8", "cs8", 8, 1, 4, false}, {"s32", nullptr, "cs32", 32, 1, 1, false}};
	for (int bf = 0; bf < 2; bf++)
		for (auto &f : forms)
			for (int cols : {1, 7, 41, 130})
				for (int flags = 0; flags < 3; flags++) {
					if (bf && !f.aligned)
						continue;
					// All flags at one width, and at the others one in turn.
					if (cols != 41 && flags != (cols / 3 + f.G / 8 + f.V) % 3)
						continue;
					std::string pre = bf ? "dk_spmm_bf16_" : "dk_spmm_";
					Mat x(45, cols, f.aligned), dst(60, cols, f.aligned, [] { return NAN; });
					std::vector<uint16_t> half;
					if (bf)
						for (auto &v : x.d.h) {
							uint32_t b;
							memcpy(&b, &v, 4);
							half.push_back((uint16_t)(b >> 16));
							b &= 0xffff0000u;
							memcpy(&v, &b, 4);
						}
					Dev<uint16_t> dhalf(half);
					Dev<float> bias(std::vector<float>((size_t)cols, 0.25f));
					Ep ep;
					if (flags)
						ep.bias = &bias, ep.act = flags, ep.p = 0.3f;
					bool w = flags > 0, scales = flags > 1, self = flags > 0;
					V xs = {bf ? Box(dhalf) : Box(x.d), x.ld, cols}, gr = {g.drp, g.dcol, w ? Box(g.dval) : Box(nullptr)};
					V ends = {scales ? Box(rs) : Box(nullptr), scales ? Box(cs) : Box(nullptr), (int32_t)self, scales ? Box(selfcol) : Box(nullptr), scales ? Box(sw) : Box(nullptr)};
					// selfcol null needs a square graph: use it only with a map
					if (self && !scales)
						ends[3] = Box(selfcol);
					int64_t tiles = up(cols, f.G * f.V), least = f.wide ? 32 : 4096;
					launch((pre + f.rows).c_str(), tiles * up(60, 256 / f.G), V{dst.d, dst.ld} + xs + gr + V{nullptr, 0, 60, 0, least} + ends + ep.boxes());
					if (f.wide)
						launch((pre + f.wide).c_str(), tiles * up(60, 8), V{dst.d, dst.ld} + xs + gr + V{nullptr, 0, 60, 32, 4096} + ends + ep.boxes());
					Mat part(start.back(), cols, f.aligned, [] { return NAN; });
					launch((pre + f.chunk).c_str(), tiles * start.back(), V{part.d, part.ld} + xs + gr + V{scales ? Box(cs) : Box(nullptr), dlist, dstart, 0, (int64_t)list.size()});
					launch((pre + "sum").c_str(), 2, V{dst.d, dst.ld, part.d, part.ld} + xs + V{dlist, dstart, 0, (int64_t)list.size(), 3} + ends + ep.boxes());
					check(pre + f.rows + " width " + std::to_string(cols) + " flags " + std::to_string(flags), dst, [&](int64_t v, int c) {
						Want s{0, 0};
						auto add = [&](double t) { s.v += t, s.abs += std::fabs(t); };
						int32_t u = self ? selfcol.h[(size_t)v] : -1;
						if (u >= 0)
							add((scales ? (double)sw.h[(size_t)v] * cs.h[(size_t)u] : 1) * x.at(u, c));
						for (int64_t e = g.rp[(size_t)v]; e < g.rp[(size_t)v + 1]; e++) {
							int32_t k = g.col[(size_t)e];
							add((w ? g.val[(size_t)e] : 1.0) * (scales ? cs.h[(size_t)k] : 1.0) * x.at(k, c));
						}
						if (scales)
							s.v *= rs.h[(size_t)v], s.abs *= rs.h[(size_t)v];
						return ep.finish(s, v, c);
					}, 1e-5);
				}
}

static void spmmt()
{
	Graph g(9100, 30, [](int64_t v) { return v % 3; });
	for (auto &c : g.col)
		if (below(2))
			c = 3;
	for (int64_t v = 0; v < g.rows; v++)
		std::sort(g.col.begin() + g.rp[(size_t)v], g.col.begin() + g.rp[(size_t)v + 1]);
	g.place();
	auto [t, perm] = g.transpose();
	auto [list, start] = t->chunks(4096, 2048);
	Dev<int32_t> dlist(list);
	Dev<int64_t> dstart(start), dperm(perm);
	struct Form { const char *rows, *chunk; int G, V; bool aligned; };
	for (auto &f : {Form{"g8", "c8", 8, 4, true}, Form{"g16", "c16", 16, 4, true}, Form{"g32", "c32", 32, 4, true}, Form{"s8", "cs8", 8, 1, false}, Form{"s32", "cs32", 32, 1, false}})
		for (int cols : {1, 41})
			for (int w = 0; w < 2; w++) {
				Mat x(g.rows, cols, f.aligned), dst(30, cols, f.aligned, [] { return NAN; }), part(start.back(), cols, f.aligned, [] { return NAN; });
				int64_t lo = w ? 17 : 0, hi = w ? 8000 : g.rows, tiles = up(cols, f.G * f.V);
				V common = {x.d, x.ld, cols, t->drp, t->dcol, w ? Box(g.dval) : Box(nullptr), dperm};
				launch((std::string("dk_spmmt_") + f.rows).c_str(), tiles * up(30, 256 / f.G), V{dst.d, dst.ld} + common + V{30, 4096, lo, hi});
				launch((std::string("dk_spmmt_") + f.chunk).c_str(), tiles * start.back(), V{part.d, part.ld} + common + V{dlist, dstart, 0, (int64_t)list.size(), lo, hi});
				launch("dk_spmm_sum", 1, V{dst.d, dst.ld, part.d, part.ld, x.d, x.ld, cols, dlist, dstart, 0, (int64_t)list.size(), 2, nullptr, nullptr, 0, nullptr, nullptr} + Ep().boxes());
				check(std::string("dk_spmmt_") + f.rows, dst, [&](int64_t u, int c) {
					Want s{0, 0};
					for (int64_t e = t->rp[(size_t)u]; e < t->rp[(size_t)u + 1]; e++) {
						int32_t v = t->col[(size_t)e];
						if (v < lo || v >= hi)
							continue;
						double y = (w ? t->val[(size_t)e] : 1.0) * x.at(v, c);
						s.v += y, s.abs += std::fabs(y);
					}
					return s;
				}, 1e-5);
			}
}

static void edges()
{
	Graph g(60, 45, [](int64_t v) { return v % 7 == 0 ? 0 : below(50); });
	int64_t lo = 3, hi = 55, e0 = g.rp[3], e1 = g.rp[55];
	auto rowOf = [&](int64_t e) { return (int64_t)(std::upper_bound(g.rp.begin(), g.rp.end(), e) - g.rp.begin()) - 1; };
	for (int al = 0; al < 2; al++)
		for (int cols : {0, 1, 41, 70}) {
			Mat x(45, cols, al), y(60, cols, al), dst((int64_t)g.col.size(), 1, false, [] { return NAN; });
			launch(al ? "dk_sddmm_v4" : "dk_sddmm_v1", up(e1 - e0, 256), {dst.d, x.d, x.ld, y.d, y.ld, cols, g.drp, g.dcol, lo, hi, e0, e1});
			check("dk_sddmm width " + std::to_string(cols), dst, [&](int64_t e, int) {
				if (e < e0 || e >= e1)
					return Want{NAN, 0};
				Want w{0, 0};
				w.v = rowDot(x, g.col[(size_t)e], y, rowOf(e), 0, cols, &w.abs);
				return w;
			});
		}
	for (float p : {0.0f, 0.4f}) {
		Ep d;
		d.p = p;
		Mat dst((int64_t)g.col.size(), 1, false, [] { return NAN; });
		launch("dk_edge_dropout", up(e1 - e0, 256), {dst.d, g.dval, g.drp, g.dcol, lo, hi, e0, e1, p > 0 ? 256 : 0, nullptr, d.key, (uint64_t)d.threshold(), d.keep()});
		check("dk_edge_dropout", dst, [&](int64_t e, int) {
			if (e < e0 || e >= e1)
				return Want{NAN, 0};
			bool k = p == 0 || keeps(d.key, (int32_t)rowOf(e), (uint32_t)g.col[(size_t)e], d.threshold());
			double v = k ? (double)g.val[(size_t)e] * d.keep() : 0;
			return Want{v, v};
		});
	}
}

static void epilogues()
{
	for (int act = 0; act < 5; act++)
		for (float p : {0.0f, 0.5f})
			for (int cols : {1, 41, 100}) {
				Mat x(37, cols, cols != 41, [] { return uniform(-3, 3); }), y(37, cols, true), dy(37, cols, false), dx(37, cols, true, [] { return NAN; });
				Dev<float> bias(std::vector<float>((size_t)cols, 0.125f));
				Dev<int32_t> ids([] { std::vector<int32_t> s; for (int i = 0; i < 37; i++) s.push_back(1000 - i); return s; }());
				Ep ep;
				ep.act = act, ep.p = p, ep.bias = &bias, ep.ids = &ids;
				int shift = log2of(cols);
				launch("dk_forward", eachGrid(37, shift), V{y.d, y.ld, x.d, x.ld, 0, 37, cols, shift} + ep.boxes());
				check("dk_forward act " + std::to_string(act), y, [&](int64_t r, int c) { return ep.finish({x.at(r, c), std::fabs(x.at(r, c))}, r, c); }, 1e-6);
				launch("dk_backward", eachGrid(37, shift), V{dx.d, dx.ld, dy.d, dy.ld, y.d, y.ld, 0, 37, cols, shift} + ep.boxes());
				check("dk_backward act " + std::to_string(act), dx, [&](int64_t r, int c) {
					double keep = p > 0 ? ep.keep() : 1, a = y.at(r, c) / keep, d = dy.at(r, c) * keep, s = 1;
					if (p > 0 && !keeps(ep.key, ids.h[(size_t)r], (uint32_t)c, ep.threshold()))
						return Want{0, 0};
					switch (act) {
					case 1: s = a <= 0 ? 0 : 1; break;
					case 2: s = a <= 0 ? 0.2 : 1; break;
					case 3: s = a <= 0 ? a + 1 : 1; break;
					case 4: s = 1 - a * a; break;
					}
					return Want{d * s, std::fabs(d)};
				}, 1e-6);
			}
}

static void gemm()
{
	struct Size { int m, n, k; };
	for (auto s : {Size{1, 1, 1}, Size{130, 41, 37}, Size{65, 128, 300}, Size{5, 7, 0}})
		for (int t = 0; t < 3; t++)
			for (int form = 0; form < 4; form++)
				for (int slices : {1, 5}) {
					bool al = form > 0;
					const char *op[] = {"nn", "nt", "tn"};
					if (form >= 2 && !units)
						continue;
					std::string name = form == 2 ? "dk_gemm_tf32_" : form == 3 ? "dk_gemm_bf16_" : "dk_gemm_";
					name += op[t];
					if (form < 2)
						name += al ? "_v4" : "_v1";
					Mat a(t == 2 ? s.k : s.m, t == 2 ? s.m : s.k, al), b(t == 1 ? s.n : s.k, t == 1 ? s.k : s.n, al);
					Mat dst(s.m, s.n, al), before(s.m, s.n, al);
					before.d.h = dst.d.h;
					Dev<float> bias(std::vector<float>((size_t)s.n, 0.5f)), part(std::vector<float>((size_t)(slices * s.m * s.n), NAN));
					Ep ep;
					ep.act = (t + form) % 5, ep.bias = t ? &bias : nullptr, ep.p = form == 1 ? 0.25f : 0;
					int add = (t + slices) % 2, kc = (int)up(up(s.k, slices), 8) * 8;
					launch(name.c_str(), up(s.n, 64) * up(s.m, 128) * slices, V{dst.d, dst.ld, a.d, a.ld, b.d, b.ld, s.m, s.n, s.k, kc ? kc : 1, slices > 1 ? Box(part) : Box(nullptr), add} + ep.boxes());
					if (slices > 1)
						launch("dk_gemm_sum", 2, V{dst.d, dst.ld, part, s.m, s.n, slices, add, 4} + ep.boxes());
					check(name + " " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + " slices " + std::to_string(slices), dst, [&](int64_t i, int j) {
						Want w{0, 1e-3};
						for (int k = 0; k < s.k; k++) {
							double y = (t == 2 ? a.at(k, i) : a.at(i, k)) * (t == 1 ? b.at(j, k) : b.at(k, j));
							w.v += y, w.abs += std::fabs(y);
						}
						if (add)
							w.v += before.at(i, j), w.abs += std::fabs(before.at(i, j));
						return ep.finish(w, i, j);
					}, form == 2 ? 1.0 / 1024 : form == 3 ? 1.0 / 128 : 4e-6);
				}
}

static void gat()
{
	Graph g(50, 50, [](int64_t v) { return v % 7 == 0 ? 0 : v == 5 ? 513 : v == 11 ? 1100 : below(30); });
	auto [t, perm] = g.transpose();
	(void)perm;
	struct Size { int heads, d; bool al; };
	for (auto s : {Size{8, 8, true}, Size{1, 41, true}, Size{3, 5, false}, Size{2, 132, true}, Size{1, 1, false}})
		for (int drop = 0; drop < 2; drop++) {
			int hd = s.heads * s.d, shift = log2of((int)up(s.d, s.al ? 4 : 1));
			std::string v = s.al ? "v4" : "v1";
			Mat x(50, hd, s.al), dst(50, hd, s.al, [] { return NAN; }), dy(50, hd, s.al), dx(50, hd, s.al, [] { return NAN; });
			auto wide = [] { return uniform(-4, 4); };
			Mat as(50, s.heads, true, wide), ad(50, s.heads, false, wide);
			auto none = [] { return NAN; };
			Mat lse(50, s.heads, true, none), dot(50, s.heads, true, none), dad(50, s.heads, true, none), das(50, s.heads, false, none);
			Dev<int32_t> selfcol([] { std::vector<int32_t> c; for (int i = 0; i < 50; i++) c.push_back(i % 4 ? i : -1); return c; }());
			Ep dp, ep;
			dp.p = drop ? 0.3f : 0;
			ep.act = drop;
			float slope = 0.2f;
			auto att = [&](Graph &gr, int sh) {
				return V{gr.drp, gr.dcol, gr.dval, as.d, as.ld, ad.d, ad.ld, s.heads, s.d, sh, slope, 1, selfcol, nullptr, drop, dp.key, (uint64_t)dp.threshold(), dp.keep(), nullptr, nullptr};
			};
			int64_t per = 256 >> shift;
			auto rowsGrid = up(50 * s.heads, per);
			V rows = {nullptr, 0, 50, 512};
			auto [list, start] = g.chunks(513, 256);
			Dev<int32_t> dlist(list);
			Dev<int64_t> dstart(start);
			int64_t nl = (int64_t)list.size(), nc = start.back();
			V chunks = {dlist, dstart, 0, nl};
			Mat part(nc, hd + 3 * s.heads, true, none);
			launch(("dk_gat_" + v).c_str(), rowsGrid, V{dst.d, dst.ld, lse.d, lse.ld, x.d, x.ld} + att(g, shift) + rows + ep.boxes());
			launch(("dk_gat_chunk_" + v).c_str(), up(nc * s.heads, per), V{part.d, part.ld, x.d, x.ld} + att(g, shift) + chunks);
			launch("dk_gat_sum", 2, V{dst.d, dst.ld, lse.d, lse.ld, part.d, part.ld, x.d, x.ld} + att(g, 4) + chunks + ep.boxes());
			struct Term { int64_t u, v; double w, s, slope, keep; };
			auto terms = [&](Graph &gr, int64_t r, int h, bool back) {
				std::vector<Term> l;
				auto add = [&](int64_t o, double w) {
					int64_t u = back ? r : o, q = back ? o : r;
					double z = (double)(float)(as.at(u, h) + ad.at(q, h));
					double k = !drop ? 1 : keeps(dp.key, (int32_t)q, (uint32_t)u * (uint32_t)s.heads + (uint32_t)h, dp.threshold()) ? dp.keep() : 0;
					if (w != 0)
						l.push_back({u, q, w, z > 0 ? z : slope * z, z > 0 ? 1 : slope, k});
				};
				if (selfcol.h[(size_t)r] >= 0)
					add(selfcol.h[(size_t)r], 1);
				for (int64_t e = gr.rp[(size_t)r]; e < gr.rp[(size_t)r + 1]; e++)
					add(gr.col[(size_t)e], gr.val[(size_t)e]);
				return l;
			};
			auto sumOf = [&](int64_t r, int h) {
				double z = 0;
				for (auto &k : terms(g, r, h, false))
					z += k.w * std::exp(k.s);
				return z;
			};
			std::string at = " heads " + std::to_string(s.heads) + " of " + std::to_string(s.d) + (drop ? " dropout" : "");
			check("dk_gat lse" + at, lse, [&](int64_t r, int h) { double l = std::log(sumOf(r, h)); return Want{l, std::fabs(l) + 1}; }, 4e-6);
			check("dk_gat" + at, dst, [&](int64_t r, int c) {
				int h = c / s.d;
				Want w{0, 0};
				double z = sumOf(r, h);
				for (auto &k : terms(g, r, h, false)) {
					double y = k.w * std::exp(k.s) / z * k.keep * x.at(k.u, c);
					w.v += y, w.abs += std::fabs(y);
				}
				return ep.finish(w, r, c);
			}, 1e-5);
			V back = {x.d, x.ld, lse.d, lse.ld, dy.d, dy.ld};
			launch(("dk_gat_dst_" + v).c_str(), rowsGrid, V{dad.d, dad.ld, dot.d, dot.ld} + back + att(g, shift) + rows);
			launch(("dk_gat_dst_chunk_" + v).c_str(), up(nc * s.heads, per), V{part.d, part.ld} + back + att(g, shift) + chunks);
			launch("dk_gat_dst_sum", up(nl * s.heads, per), V{dad.d, dad.ld, dot.d, dot.ld, part.d, part.ld} + back + att(g, shift) + chunks);
			auto sums = [&](int64_t r, int h, int which) {
				double aq = 0, aqs = 0, as_ = 0, ab = 0, abs = 0;
				for (auto &k : terms(g, r, h, false)) {
					double al = k.w * std::exp(k.s - lse.at(r, h)), b = 0, q = k.keep * rowDot(dy, r, x, k.u, h * s.d, s.d, &b);
					aq += al * q, aqs += al * q * k.slope, as_ += al * k.slope, ab += al * b * k.keep, abs += al * b * k.keep;
				}
				return which ? Want{aqs - aq * as_, 2 * abs} : Want{aq, ab};
			};
			check("dk_gat_dst dot" + at, dot, [&](int64_t r, int h) { return sums(r, h, 0); }, 2e-5);
			check("dk_gat_dst dad" + at, dad, [&](int64_t r, int h) { return sums(r, h, 1); }, 2e-5);
			auto [tlist, tstart] = t->chunks(40, 256);
			Dev<int32_t> tdlist(tlist);
			Dev<int64_t> tdstart(tstart);
			int64_t tl = (int64_t)tlist.size(), tc = tstart.back();
			V tchunks = {tdlist, tdstart, 0, tl}, dsts = {lse.d, lse.ld, dot.d, dot.ld, dy.d, dy.ld};
			Mat tpart(tc + tl, hd + s.heads, true, none);
			launch(("dk_gat_src_" + v).c_str(), rowsGrid, V{dx.d, dx.ld, das.d, das.ld, x.d, x.ld} + dsts + att(*t, shift) + V{nullptr, 0, 50, 39});
			launch(("dk_gat_src_chunk_" + v).c_str(), up(tc * s.heads, per), V{tpart.d, tpart.ld, x.d, x.ld} + dsts + att(*t, shift) + tchunks);
			launch("dk_gat_src_self", up(tl * s.heads, per), V{tpart.d, tpart.ld, tc, x.d, x.ld} + dsts + att(*t, shift) + tchunks);
			launch("dk_gat_src_sum", 2, V{dx.d, dx.ld, das.d, das.ld, tpart.d, tpart.ld, tc, s.heads, s.d, 5} + tchunks);
			check("dk_gat_src dx" + at, dx, [&](int64_t u, int c) {
				Want w{0, 0};
				for (auto &k : terms(*t, u, c / s.d, true)) {
					double y = k.w * std::exp(k.s - lse.at(k.v, c / s.d)) * k.keep * dy.at(k.v, c);
					w.v += y, w.abs += std::fabs(y);
				}
				return w;
			}, 1e-5);
			check("dk_gat_src das" + at, das, [&](int64_t u, int h) {
				Want w{0, 0};
				for (auto &k : terms(*t, u, h, true)) {
					double al = k.w * std::exp(k.s - lse.at(k.v, h)), b = 0, q = k.keep * rowDot(dy, k.v, x, u, h * s.d, s.d, &b);
					w.v += al * (q - dot.at(k.v, h)) * k.slope, w.abs += al * (b * k.keep + std::fabs(dot.at(k.v, h)));
				}
				return w;
			}, 2e-5);
		}
}

void rest();

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: check DRIVER.so PTX_FILE [SEED]\n");
		return 2;
	}
	std::string ptx;
	if (FILE *f = fopen(argv[2], "rb")) {
		char buf[65536];
		for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
			ptx.append(buf, n);
		fclose(f);
	}
	if (argc > 3)
		rng.seed((uint64_t)atoll(argv[3]));
	units = ptx.find("dk_gemm_tf32_") != std::string::npos;
	drv.open(argv[1], ptx);
	spmm();
	spmmt();
	edges();
	epilogues();
	gemm();
	gat();
	rest();
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
