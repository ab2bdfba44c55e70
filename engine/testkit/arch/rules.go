package arch

// A rule says what the files below a folder may import of ours, and what they
// must not depend on, be it through other packages of ours.
type rule struct {
	folder string // "engine/sched"; the longest that fits a file's folder counts
	// ours lists the packages of ours that may be imported: "kernels" is that
	// package alone, "kernels/..." it and all below it.
	ours []string
	// except takes packages out of ours again.
	except []string
	// tests lists what test files may import besides.
	tests []string
	// never lists imports that the folder's packages must not reach.
	never []ban
}

// A ban is an import, and all below it, with the reason that the report gives.
type ban struct{ path, because string }

var (
	noGRPC = ban{"google.golang.org/grpc", "gRPC stays in cluster and lambda"}
	noAWS  = ban{"github.com/aws", "AWS stays in lambda and cluster/blob"}
	noCgo  = ban{"C", "native code is behind kernels"}
	noCU   = ban{"gorgonia.org/cu", "GPU code is behind kernels/cuda"}
)

// pure are the imports with which a package could look at the world or at more
// than one goroutine.
var pure = []ban{
	{"time", "the scheduler has no clock"},
	{"sync", "the scheduler has no lock"},
	{"context", "the scheduler does not wait"},
	{"os", "the scheduler does no I/O"},
	{"net", "the scheduler does no I/O"},
	{"math/rand", "same inputs, same tasks"},
}

// rules is the dependency rule: cmd → bench → {cluster, lambda} → engine →
// kernels → csrc.
var rules = []rule{
	{folder: "csrc", tests: []string{"csrc/cudashim/fakedriver", "csrc/cublas/fakeblas", "csrc/cuemu"}},
	{folder: "kernels", ours: []string{"kernels/..."}, never: []ban{noGRPC, noAWS}},
	{folder: "kernels/cpu", ours: []string{"kernels", "kernels/invariant", "csrc/..."}, tests: []string{"kernels/..."}, never: []ban{noGRPC, noAWS, noCU}},
	{folder: "kernels/cuda", ours: []string{"kernels", "kernels/invariant", "kernels/spill", "kernels/cuda/...", "csrc/..."}, tests: []string{"kernels/..."}, never: []ban{noGRPC, noAWS}},
	{folder: "engine",
		ours:  []string{"engine/...", "kernels", "kernels/tensorbridge"},
		tests: []string{"kernels/ref", "kernels/devices", "kernels/kerneltest"},
		never: []ban{noGRPC, noAWS, noCgo, noCU}},
	{folder: "engine/pipeline/ongpu", tests: []string{"engine/...", "kernels/...", "csrc/cuemu"}, never: []ban{noGRPC, noAWS, noCgo, noCU}},
	{folder: "engine/sched",
		ours:  []string{"engine/task"},
		tests: []string{"engine/testkit/..."},
		never: append([]ban{noGRPC, noAWS, noCgo, noCU}, pure...)},
	{folder: "lambda",
		ours:   []string{"lambda/...", "engine/...", "kernels/...", "cluster/rpc"},
		except: []string{"engine/pipeline"},
		tests:  []string{"engine/pipeline"}},
	{folder: "cluster",
		ours:   []string{"cluster/...", "engine/...", "kernels/...", "lambda/codec"}, // the tensor frames are the same
		except: []string{"engine/pipeline"},
		tests:  []string{"engine/pipeline"}},
	{folder: "bench", ours: []string{"bench/...", "lambda/...", "cluster/...", "engine/...", "kernels/..."}, tests: []string{"csrc/cuemu"}},
	{folder: "cmd", ours: []string{"cmd/...", "bench/...", "lambda/...", "cluster/...", "engine/...", "kernels/...", "csrc/..."}},
	{folder: "cmd/dorylus-lambda",
		ours: []string{"lambda/worker"},
		never: []ban{
			{"github.com/aws/aws-sdk-go-v2", "the worker is called, it calls no AWS service"},
			{"go.etcd.io", "the worker joins no cluster"},
			{module + "/engine/dataset", "the worker reads no data sets"},
			{module + "/bench", "the worker stays small"},
			noCU,
		}},
}

// rootOnly lists packages that import no package of ours at all, although their
// folder's rule would let them.
var rootOnly = map[string]bool{"kernels": true}
