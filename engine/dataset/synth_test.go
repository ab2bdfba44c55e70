package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"runtime"
	"strings"
	"testing"
)

func synth(t testing.TB, spec string) *Raw {
	t.Helper()
	raw, err := Open(context.Background(), spec, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// digest is a checksum of everything that training sees.
func digest(raw *Raw) string {
	h := sha256.New()
	for _, x := range []any{raw.Src, raw.Dst, raw.Labels, raw.Dense.Host, raw.Splits[0].Train, raw.Splits[0].Val, raw.Splits[0].Test} {
		binary.Write(h, binary.LittleEndian, x)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func TestSynthIsSoundGraph(t *testing.T) {
	for _, spec := range []string{
		"synth:sbm,vertices=3000,degree=30,classes=7,features=20,seed=3",
		"synth:sbm,vertices=1001,degree=3.5,classes=3,features=5,seed=4,intra=0.2,labelled=0.66",
		"synth:rmat,scale=11,degree=20,classes=5,features=8,seed=5",
		"synth:rmat,scale=6,degree=12,classes=2,features=3,intra=0",
	} {
		t.Run(spec, func(t *testing.T) {
			raw := synth(t, spec)
			for _, f := range Check(raw) {
				switch f.Code {
				case "isolated-vertices", "disconnected", "class-imbalance", "unlabelled":
				default:
					t.Errorf("check: %v", f)
				}
			}
			s, _ := parseSynth(spec)
			if want := int(math.Round(float64(s.n) * s.degree / 2)); len(raw.Src) != want {
				t.Errorf("%d records, want %d", len(raw.Src), want)
			}
			labelled := 0
			for _, k := range raw.Labels {
				if k >= 0 {
					labelled++
				}
			}
			if want := int(math.Round(s.labelled * float64(s.n))); labelled != want {
				t.Errorf("%d labelled, want %d", labelled, want)
			}
			sp := raw.Splits[0]
			if got := float64(len(sp.Train)) / float64(labelled); math.Abs(got-0.66) > 0.01 {
				t.Errorf("%.3f of the labelled vertices train, want 0.66", got)
			}
			if total := len(sp.Train) + len(sp.Val) + len(sp.Test); total != labelled {
				t.Errorf("%d vertices in the split, want %d", total, labelled)
			}
		})
	}
}

// The bits are part of the contract: reports quote seeds. A change here is a change
// of every published figure on a synthetic graph.
func TestSynthRepeats(t *testing.T) {
	for spec, want := range map[string]string{
		"synth:sbm,vertices=5000,degree=40,classes=6,features=16,seed=9": "5b702083fff90363",
		"synth:rmat,scale=12,degree=35,classes=6,features=16,seed=9":     "ae1d637a7d52071b",
	} {
		first := digest(synth(t, spec))
		if first != want {
			t.Errorf("%s: %s, want %s", spec, first, want)
		}
		old := runtime.GOMAXPROCS(1)
		one := digest(synth(t, spec))
		runtime.GOMAXPROCS(old)
		if one != first {
			t.Errorf("%s: %s on one core, %s on %d", spec, one, first, old)
		}
		if other := digest(synth(t, spec[:len(spec)-1]+"8")); other == first {
			t.Errorf("%s: seed 8 gives the same graph", spec)
		}
	}
}

// nearest is the share of vertices whose row is nearest to its own class's centroid,
// where centroids are estimated from the training rows.
func nearest(raw *Raw, row func(v int) []float64) float64 {
	classes, f := raw.classes(), raw.Dense.Cols
	mean := make([][]float64, classes)
	count := make([]float64, classes)
	for k := range mean {
		mean[k] = make([]float64, f)
	}
	for _, v := range raw.Splits[0].Train {
		k := raw.Labels[v]
		count[k]++
		for c, x := range row(int(v)) {
			mean[k][c] += x
		}
	}
	right := 0
	for _, v := range raw.Splits[0].Test {
		best, at := math.Inf(1), -1
		x := row(int(v))
		for k := range mean {
			d := 0.0
			for c := range x {
				e := x[c] - mean[k][c]/count[k]
				d += e * e
			}
			if d < best {
				best, at = d, k
			}
		}
		if at == int(raw.Labels[v]) {
			right++
		}
	}
	return float64(right) / float64(len(raw.Splits[0].Test))
}

// Features alone must leave much to learn from the graph, and the graph must suffice.
func TestSynthNeedsTheGraph(t *testing.T) {
	for _, tc := range []struct {
		spec      string
		mlp, gcn  float64 // at most, at least
		maxDegree float64 // at least this many times the mean
	}{
		{"synth:sbm,vertices=6000,degree=40,classes=10,features=32,seed=1", 0.75, 0.97, 5},
		{"synth:rmat,scale=13,degree=35,classes=10,features=32,seed=1", 0.75, 0.85, 10},
	} {
		raw := synth(t, tc.spec)
		own := func(v int) []float64 {
			out := make([]float64, raw.Dense.Cols)
			for c, x := range raw.Dense.Row(v) {
				out[c] = float64(x)
			}
			return out
		}
		sum := make([][]float64, raw.N)
		degree := make([]int, raw.N)
		for v := range sum {
			sum[v] = own(v)
			degree[v]++
		}
		for i := range raw.Src {
			u, v := raw.Src[i], raw.Dst[i]
			for c := range raw.Dense.Cols {
				sum[u][c] += float64(raw.Dense.Row(int(v))[c])
				sum[v][c] += float64(raw.Dense.Row(int(u))[c])
			}
			degree[u]++
			degree[v]++
		}
		top := 0
		for v := range sum {
			for c := range sum[v] {
				sum[v][c] /= float64(degree[v])
			}
			top = max(top, degree[v])
		}
		mlp, gcn := nearest(raw, own), nearest(raw, func(v int) []float64 { return sum[v] })
		t.Logf("%s: own features %.3f, mean over neighbours %.3f, largest degree %d", tc.spec, mlp, gcn, top)
		if mlp > tc.mlp || gcn < tc.gcn {
			t.Errorf("%s: own features %.3f, want at most %.2f; mean over neighbours %.3f, want at least %.2f", tc.spec, mlp, tc.mlp, gcn, tc.gcn)
		}
		if mean := 2 * float64(len(raw.Src)) / float64(raw.N); float64(top) < tc.maxDegree*mean {
			t.Errorf("%s: largest degree %d is less than %v times the mean %.0f: no power law", tc.spec, top, tc.maxDegree, mean)
		}
	}
}

func TestSynthRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"synth:sbm":                                              "vertices is missing",
		"synth:":                                                 "neither sbm nor rmat",
		"synth:rmatt,scale=3":                                    `did you mean "rmat"`,
		"synth:sbm,vertces=10":                                   `did you mean "vertices"`,
		"synth:sbm,scale=10":                                     "sbm takes vertices",
		"synth:sbm,vertices":                                     "not key=value",
		"synth:sbm,vertices=x":                                   "vertices=x",
		"synth:sbm,vertices=10,vertices=10":                      "given twice",
		"synth:sbm,vertices=1":                                   "[2,",
		"synth:sbm,vertices=100,degree=NaN":                      "degree=NaN",
		"synth:sbm,vertices=100,intra=2":                         "intra=2",
		"synth:sbm,vertices=100,seed=-1":                         "seed=-1",
		"synth:sbm,vertices=100,classes=200":                     "200 classes for 100 vertices",
		"synth:sbm,vertices=100,degree=90":                       "too dense",
		"synth:sbm,vertices=100,degree=20,classes=20":            "of its class",
		"synth:rmat,scale=31":                                    "scale=31",
		"synth:sbm,vertices=10,degree=2,labelled=0.01,classes=2": "no vertex has a label",
	} {
		_, err := Open(context.Background(), spec, Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", spec, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Synth(ctx, "synth:sbm,vertices=1000"); err == nil {
		t.Error("a cancelled context gave a graph")
	}
}

func BenchmarkSynth(b *testing.B) {
	for _, spec := range []string{
		"synth:sbm,vertices=46600,degree=245,classes=41,features=602,seed=1",
		"synth:rmat,scale=16,degree=35,classes=25,features=300,seed=1",
	} {
		b.Run(spec, func(b *testing.B) {
			edges := 0
			for b.Loop() {
				edges += 2 * len(synth(b, spec).Src)
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
