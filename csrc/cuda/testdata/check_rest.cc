// check_rest.cc: maximum, norms, losses, optimisers, sums over rows, moves, heads.
#include "check.h"

using V = std::vector<Box>;
static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static float none() { return NAN; }

static void maxpool()
{
	Graph g(50, 50, [](int64_t v) { return v % 7 == 0 ? 0 : v == 5 ? 1500 : below(30); });
	auto [t, perm] = g.transpose();
	(void)perm;
	struct Form { const char *f, *c; int G, V; bool al; };
	for (auto &f : {Form{"g8", "c32", 8, 4, true}, Form{"g32", "c32", 32, 4, true}, Form{"s32", "cs32", 32, 1, false}})
		for (int cols : {1, 41, 140}) {
			Mat x(50, cols, f.al, [] { return below(40) == 0 ? NAN : (float)below(20) - 10; }), dst(50, cols, f.al, none), arg(50, cols, f.al, none);
			auto [list, start] = g.chunks(513, 256);
			Dev<int32_t> dl(list);
			Dev<int64_t> ds(start);
			int64_t nc = start.back(), per = 256 / f.G, tiles = up(cols, f.G * f.V);
			Mat part(nc, cols, f.al, none), parg(nc, cols, f.al, none);
			V gr = {x.d, x.ld, cols, g.drp, g.dcol, g.dval}, ch = {dl, ds, 0, (int64_t)list.size()};
			std::string pre = "dk_spmm_max_";
			launch((pre + f.f).c_str(), tiles * up(50, per), V{dst.d, dst.ld, arg.d, arg.ld} + gr + V{nullptr, 0, 50, 512});
			launch((pre + f.c).c_str(), up(cols, f.al ? 128 : 32) * up(nc, 8), V{part.d, parg.d, part.ld} + gr + ch);
			launch("dk_spmm_max_sum", 1, V{dst.d, dst.ld, arg.d, arg.ld, part.d, parg.d, part.ld, cols} + ch + V{3});
			auto best = [&](int64_t v, int c) {
				std::pair<double, int> b{0, -1};
				for (int64_t e = g.rp[(size_t)v]; e < g.rp[(size_t)v + 1]; e++)
					if (g.val[(size_t)e] > 0) {
						double a = x.at(g.col[(size_t)e], c);
						if (b.second < 0 || a > b.first || (std::isnan(a) && !std::isnan(b.first)))
							b = {a, g.col[(size_t)e]};
					}
				return b;
			};
			check("dk_spmm_max", dst, [&](int64_t v, int c) { return Want{best(v, c).first, 0}; });
			arg.d.get();
			int bad = 0;
			for (int64_t v = 0; v < 50; v++)
				for (int c = 0; c < cols; c++) {
					int32_t u;
					memcpy(&u, &arg.d.h[(size_t)(v * arg.ld + c)], 4);
					bad += u != best(v, c).second;
				}
			if (bad)
				failed++, printf("FAIL dk_spmm_max: %d of arg wrong\n", bad);
			Mat dy(50, cols, f.al), dx(50, cols, f.al, none);
			auto [tlist, tstart] = t->chunks(30, 256);
			Dev<int32_t> tdl(tlist);
			Dev<int64_t> tds(tstart);
			Mat tpart(tstart.back(), cols, f.al, none);
			V bg = {dy.d, dy.ld, arg.d, arg.ld, cols, t->drp, t->dcol}, bch = {tdl, tds, 0, (int64_t)tlist.size()};
			pre = "dk_spmm_max_back_";
			launch((pre + f.f).c_str(), tiles * up(50, per), V{dx.d, dx.ld} + bg + V{nullptr, 0, 50, 29});
			launch((pre + f.c).c_str(), up(cols, f.al ? 128 : 32) * up(tstart.back(), 8), V{tpart.d, tpart.ld} + bg + bch);
			launch("dk_spmm_sum", 1, V{dx.d, dx.ld, tpart.d, tpart.ld, dy.d, dy.ld, cols, tdl, tds, 0, (int64_t)tlist.size(), 2, nullptr, nullptr, 0, nullptr, nullptr} + Ep().boxes());
			check(pre, dx, [&](int64_t u, int c) {
				Want w{0, 0};
				for (int64_t v = 0; v < 50; v++)
					if (best(v, c).second == u)
						w.v += dy.at(v, c), w.abs += std::fabs(dy.at(v, c));
				return w;
			});
		}
}

static void norms()
{
	for (int cols : {1, 41, 130}) {
		int rows = 1100;
		Mat x(rows, cols, true), dst(rows, cols, false, none), stat(rows, 2, true, none), ga(1, cols, true), be(1, cols, true), dy(rows, cols, true), dx(rows, cols, false, none);
		launch("dk_layer_norm", up(rows, 8), {dst.d, dst.ld, stat.d, stat.ld, x.d, x.ld, ga.d, be.d, 1e-3f, rows, cols});
		auto moments = [&](int64_t r) {
			double m = 0, q = 0;
			for (int c = 0; c < cols; c++)
				m += x.at(r, c) / cols;
			for (int c = 0; c < cols; c++)
				q += (x.at(r, c) - m) * (x.at(r, c) - m) / cols;
			return std::pair<double, double>{m, 1 / std::sqrt(q + (double)1e-3f)};
		};
		check("dk_layer_norm stat", stat, [&](int64_t r, int c) { auto m = moments(r); return Want{c ? m.second : m.first, c ? m.second : 1}; });
		check("dk_layer_norm", dst, [&](int64_t r, int c) { auto m = moments(r); return Want{(x.at(r, c) - m.first) * m.second * ga.at(0, c) + be.at(0, c), m.second + 1}; });
		launch("dk_layer_norm_back", up(rows, 8), {dx.d, dx.ld, dy.d, dy.ld, x.d, x.ld, stat.d, stat.ld, ga.d, rows, cols});
		check("dk_layer_norm_back", dx, [&](int64_t r, int c) {
			double m = stat.at(r, 0), i = stat.at(r, 1), g = 0, gx = 0;
			for (int k = 0; k < cols; k++)
				g += dy.at(r, k) * ga.at(0, k) / cols, gx += dy.at(r, k) * ga.at(0, k) * (x.at(r, k) - m) * i / cols;
			return Want{i * (dy.at(r, c) * ga.at(0, c) - g - (x.at(r, c) - m) * i * gx), 4 * i};
		}, 4e-6);
		int64_t slabs = up(rows, 512), tiles = up(cols, 32);
		Mat part(slabs, cols, true, none), sum(1, cols, true, none), mean(1, cols, true);
		auto finish = [&](float div) { launch("dk_col_finish", up(cols, 256), {sum.d, sum.ld, part.d, part.ld, slabs, cols, cols, div}); };
		auto total = [&](const char *name, double div, std::function<double(int64_t, int)> f) {
			finish((float)div);
			check(name, sum, [&](int64_t, int c) {
				Want w{0, 0};
				for (int64_t r = 0; r < rows; r++)
					w.v += f(r, c) / div, w.abs += std::fabs(f(r, c)) / div;
				return w;
			});
		};
		launch("dk_col_sum", slabs * tiles, {part.d, part.ld, x.d, x.ld, rows, cols});
		total("dk_col_sum", rows, [&](int64_t r, int c) { return x.at(r, c); });
		launch("dk_col_dot", slabs * tiles, {part.d, part.ld, x.d, x.ld, dy.d, dy.ld, rows, cols});
		total("dk_col_dot", 1, [&](int64_t r, int c) { return x.at(r, c) * dy.at(r, c); });
		launch("dk_total", 1, {sum.d, part.d, (int64_t)cols}); // the first slab's columns
		launch("dk_col_square", slabs * tiles, {part.d, part.ld, x.d, x.ld, mean.d, rows, cols});
		total("dk_col_square", 1, [&](int64_t r, int c) { return std::pow(x.at(r, c) - mean.at(0, c), 2); });
		launch("dk_norm_gamma", slabs * tiles, {part.d, part.ld, dy.d, dy.ld, x.d, x.ld, stat.d, stat.ld, rows, cols});
		total("dk_norm_gamma", 1, [&](int64_t r, int c) { return dy.at(r, c) * (x.at(r, c) - stat.at(r, 0)) * stat.at(r, 1); });
		Mat aff(rows, cols, true, none);
		launch("dk_col_affine", 3, {aff.d, aff.ld, x.d, x.ld, dy.d, dy.ld, ga.d, be.d, mean.d, rows, cols, 5});
		check("dk_col_affine", aff, [&](int64_t r, int c) { return Want{ga.at(0, c) * x.at(r, c) + be.at(0, c) * dy.at(r, c) + mean.at(0, c), 3}; });
	}
	std::vector<double> d(10001);
	std::vector<float> f(10001);
	double want = 0;
	for (size_t i = 0; i < d.size(); i++)
		d[i] = f[i] = uniform(), want += d[i];
	Dev<double> dd(d), out(std::vector<double>(1));
	Dev<float> df(f);
	Mat fo(1, 1, false);
	launch("dk_total_double", 1, {out, dd, 10001});
	if (std::fabs(out.get()[0] - want) > 1e-9)
		failed++, printf("FAIL dk_total_double: want %.9g\n", want);
	launch("dk_total", 1, {fo.d, df, 10001});
	check("dk_total", fo, [&](int64_t, int) { return Want{want, 5000}; });
}

static void losses()
{
	for (int cols : {1, 41, 70})
		for (float width : {1.0f, 60.0f}) {
			int rows = 77;
			Mat z(rows, cols, true, [=] { return uniform(-width, width); }), grad(rows, cols, false, none);
			Dev<int32_t> labels([&] { std::vector<int32_t> l; for (int i = 0; i < rows; i++) l.push_back((int32_t)below(cols + 1) - 1); return l; }());
			Dev<float> cw([&] { std::vector<float> l; for (int i = 0; i < cols; i++) l.push_back(uniform(0.5, 2)); return l; }());
			Dev<double> loss(std::vector<double>((size_t)rows, NAN)), sum(std::vector<double>(1));
			auto total = [&](const char *name, double want, double tol) {
				launch("dk_total_double", 1, {sum, loss, rows});
				double got = sum.get()[0];
				if (!(std::fabs(got - want) <= tol))
					failed++, printf("FAIL %s: loss %.9g, want %.9g\n", name, got, want);
				else
					passed++;
			};
			launch("dk_softmax_xent", up(rows, 8), {grad.d, grad.ld, loss, z.d, z.ld, labels, cw, 0.25f, 0, rows, cols});
			double want = 0;
			auto soft = [&](int64_t r, int c) {
				double t = -1e300, s = 0;
				for (int k = 0; k < cols; k++)
					t = std::max(t, z.at(r, k));
				for (int k = 0; k < cols; k++)
					s += std::exp(z.at(r, k) - t);
				return std::pair<double, double>{std::exp(z.at(r, c) - t) / s, std::log(s) + t - z.at(r, c)};
			};
			for (int r = 0; r < rows; r++)
				if (labels.h[(size_t)r] >= 0)
					want += soft(r, labels.h[(size_t)r]).second * 0.25 * cw.h[(size_t)labels.h[(size_t)r]];
			total("dk_softmax_xent", want, 1e-6 * (std::fabs(want) + 1));
			check("dk_softmax_xent", grad, [&](int64_t r, int c) {
				int l = labels.h[(size_t)r];
				if (l < 0)
					return Want{0, 0};
				double f = 0.25 * cw.h[(size_t)l];
				return Want{(soft(r, c).first - (c == l)) * f, f};
			}, 2e-6);
			Graph g(rows, cols, [&](int64_t) { return below(4); });
			Dev<float> pw(cw.h);
			launch("dk_sigmoid_bce", up(rows, 8), {grad.d, grad.ld, loss, z.d, z.ld, g.drp, g.dcol, labels, pw, 0.25f, rows, cols});
			auto on = [&](int64_t r, int c) { return std::binary_search(g.col.begin() + g.rp[(size_t)r], g.col.begin() + g.rp[(size_t)r + 1], c); };
			want = 0;
			for (int r = 0; r < rows; r++)
				for (int c = 0; c < cols && labels.h[(size_t)r] >= 0; c++) {
					double x = on(r, c) ? -z.at(r, c) : z.at(r, c);
					want += (x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x))) * 0.25 * (on(r, c) ? pw.h[(size_t)c] : 1);
				}
			total("dk_sigmoid_bce", want, 1e-6 * want);
			check("dk_sigmoid_bce", grad, [&](int64_t r, int c) {
				if (labels.h[(size_t)r] < 0)
					return Want{0, 0};
				double s = on(r, c) ? -pw.h[(size_t)c] / (1 + std::exp(z.at(r, c))) : 1 / (1 + std::exp(-z.at(r, c)));
				return Want{s * 0.25, std::fabs(s)};
			}, 2e-6);
		}
}

static void optim()
{
	for (int dec = 0; dec < 2; dec++) {
		auto pos = [] { return uniform(0, 1); };
		Mat p(20, 33, true), g(20, 33, false), m(20, 33, true), v(20, 33, true, pos), p0(20, 33, true), m0(20, 33, true), v0(20, 33, true);
		p0.d.h = p.d.h, m0.d.h = m.d.h, v0.d.h = v.d.h;
		float lr = 0.01f, wd = 0.1f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f, decay = dec ? 1 - lr * wd : 1, l2 = dec ? 0 : wd;
		float rate = (float)(lr / (1 - std::pow((double)b1, 3))), root = (float)std::sqrt(1 - std::pow((double)b2, 3));
		launch("dk_adam", 1, {p.d, p.ld, g.d, g.ld, m.d, m.ld, v.d, v.ld, 20, 33, 5, decay, l2, b1, (float)(1 - (double)b1), b2, (float)(1 - (double)b2), rate, root, eps});
		auto step = [&](int64_t r, int c, double *m1, double *v1) {
			double w = p0.at(r, c), d = g.at(r, c) + l2 * w;
			*m1 = b1 * m0.at(r, c) + (1 - (double)b1) * d;
			*v1 = b2 * v0.at(r, c) + (1 - (double)b2) * d * d;
			return w * decay - rate * *m1 / (std::sqrt(*v1) / root + eps);
		};
		double a, b;
		check("dk_adam p", p, [&](int64_t r, int c) { double w = step(r, c, &a, &b); return Want{w, 2}; });
		check("dk_adam m", m, [&](int64_t r, int c) { step(r, c, &a, &b); return Want{a, 1}; });
		check("dk_adam v", v, [&](int64_t r, int c) { step(r, c, &a, &b); return Want{b, 1}; });
		p0.d.h = p.d.h, m0.d.h = m.d.h;
		launch("dk_sgd", 1, {p.d, p.ld, g.d, g.ld, dec ? Box(m.d) : Box(nullptr), m.ld, 20, 33, 5, lr, 0.9f, wd, 0});
		check("dk_sgd", p, [&](int64_t r, int c) {
			double d = g.at(r, c) + (double)wd * p0.at(r, c) + (dec ? 0.9f * m0.at(r, c) : 0);
			return Want{p0.at(r, c) - lr * d, 2};
		});
	}
}

static void moves()
{
	for (int cols : {1, 41}) {
		Mat a(50, cols, true), b(50, cols, false), d(50, cols, true, none), s(1, 1, false);
		launch("dk_copy", 2, {d.d, d.ld, a.d, a.ld, 50, cols, 4});
		check("dk_copy", d, [&](int64_t r, int c) { return Want{a.at(r, c), 0}; });
		launch("dk_zero", 2, {d.d, d.ld, 50, cols, 4});
		check("dk_zero", d, [&](int64_t, int) { return Want{0, 0}; });
		launch("dk_add", 2, {d.d, d.ld, a.d, a.ld, b.d, b.ld, 50, cols, 4});
		check("dk_add", d, [&](int64_t r, int c) { return Want{a.at(r, c) + b.at(r, c), 2}; });
		launch("dk_add_scaled", 2, {d.d, d.ld, a.d, a.ld, b.d, b.ld, 0.5f, s.d, 50, cols, 4});
		check("dk_add_scaled", d, [&](int64_t r, int c) { return Want{a.at(r, c) + (0.5 + s.at(0, 0)) * b.at(r, c), 3}; });
		std::vector<int32_t> id;
		for (int i = 0; i < 50; i++)
			id.push_back((i * 7 + 3) % 50);
		Dev<int32_t> ids(id);
		launch("dk_gather_rows", 2, {d.d, d.ld, a.d, a.ld, ids, 50, cols, 4});
		check("dk_gather_rows", d, [&](int64_t r, int c) { return Want{a.at(id[(size_t)r], c), 0}; });
		launch("dk_scatter_rows", 2, {d.d, d.ld, a.d, a.ld, ids, 50, cols, 4});
		check("dk_scatter_rows", d, [&](int64_t r, int c) { return Want{a.at(std::find(id.begin(), id.end(), r) - id.begin(), c), 0}; });
		Mat before(50, cols, true);
		before.d.h = d.d.h;
		Dev<int32_t> to(std::vector<int32_t>{4, 9}), from(std::vector<int32_t>{1, 2, 5, 8, 49});
		Dev<int64_t> start(std::vector<int64_t>{0, 3, 5});
		launch("dk_add_rows", 1, {d.d, d.ld, a.d, a.ld, to, start, from, 2, cols, 4});
		check("dk_add_rows", d, [&](int64_t r, int c) {
			double w = before.at(r, c);
			for (int i = r == 4 ? 0 : r == 9 ? 3 : 5; i < (r == 4 ? 3 : 5); i++)
				w += a.at(from.h[(size_t)i], c);
			return Want{w, r == 4 || r == 9 ? 5.0 : 0.0};
		});
		Dev<uint16_t> h(std::vector<uint16_t>((size_t)(50 * cols)));
		launch("dk_to_bf16", 2, {h, cols, a.d, a.ld, 50, cols, 4});
		launch("dk_from_bf16", 2, {d.d, d.ld, h, cols, 50, cols, 4});
		check("dk_from_bf16", d, [&](int64_t r, int c) { return Want{a.at(r, c), std::fabs(a.at(r, c))}; }, 1.0 / 256);
	}
}

static void heads()
{
	for (int h : {1, 8})
		for (int d : {1, 8, 41}) {
			int rows = 600, shift = d > 8 ? 5 : 1;
			Mat x(rows, h * d, true), a(h, d, false), g(rows, h, true), dst(rows, h, false, none), dx(rows, h * d, true), dx0(rows, h * d, true);
			launch("dk_head_dot", up((int64_t)rows * h, 256 >> shift), {dst.d, dst.ld, x.d, x.ld, a.d, a.ld, rows, h, d, shift});
			check("dk_head_dot", dst, [&](int64_t r, int k) { Want w{0, 0}; for (int c = 0; c < d; c++) w.v += x.at(r, k * d + c) * a.at(k, c), w.abs += 1; return w; });
			dx0.d.h = dx.d.h;
			launch("dk_head_outer_add", 3, {dx.d, dx.ld, g.d, g.ld, a.d, a.ld, rows, h, d, 4});
			check("dk_head_outer_add", dx, [&](int64_t r, int c) { return Want{dx0.at(r, c) + g.at(r, c / d) * a.at(c / d, c % d), 2}; });
			Mat mean(rows, d, true, none), part(2, h * d, true, none), da(h, d, true, none);
			Ep ep;
			ep.act = 3, ep.p = 0.2f;
			launch("dk_head_mean", 3, V{mean.d, mean.ld, x.d, x.ld, rows, h, d, 4} + ep.boxes());
			check("dk_head_mean", mean, [&](int64_t r, int c) { Want w{0, 1}; for (int k = 0; k < h; k++) w.v += x.at(r, k * d + c) / h; return ep.finish(w, r, c); });
			launch("dk_head_spread", 3, {dx.d, dx.ld, mean.d, mean.ld, rows, h, d, 4});
			check("dk_head_spread", dx, [&](int64_t r, int c) { return Want{mean.at(r, c % d) / h, 1}; });
			launch("dk_head_dot_grad", 2 * up(h * d, 32), {part.d, part.ld, g.d, g.ld, x.d, x.ld, rows, h, d});
			launch("dk_col_finish", up(h * d, 256), {da.d, da.ld, part.d, part.ld, 2, h * d, d, 1.0f});
			check("dk_head_dot_grad", da, [&](int64_t k, int c) { Want w{0, 0}; for (int r = 0; r < rows; r++) w.v += g.at(r, k) * x.at(r, k * d + c), w.abs += 1; return w; });
		}
}

void rest()
{
	maxpool();
	norms();
	losses();
	optim();
	moves();
	heads();
}
