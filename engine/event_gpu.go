package engine

// EmulatedNote is what is said of times and dollars of a run on an emulated device.
const EmulatedNote = "emulated: says nothing about time or dollars"

// GPUUsed says what GPUs a run computes on: once at its start, and again, with what they
// have taken, before its end.
type GPUUsed struct {
	GPUs []GPU `json:"gpus"`
	// Emulated: there is no GPU, but the emulated device of the tests.
	Emulated  bool   `json:"emulated"`
	Precision string `json:"precision"` // one of Precisions
	// Products are made by "own" kernels or "cublas 12.8.4"; "" in events that are older.
	Products string `json:"products,omitempty"`
}

// GPU is one of them. Numbers are bytes.
type GPU struct {
	Name  string `json:"name"`               // "cuda:0"
	What  string `json:"what"`               // "NVIDIA H200 9.0, driver 12.8, PTX sm_80"
	Limit int64  `json:"memory_limit_bytes"` // that the run may take of it
	Peak  int64  `json:"memory_peak_bytes"`  // that it has taken at most
	Total int64  `json:"memory_bytes"`       // that it has
	// Plan says whether all lies in the device's memory: "resident", or "streamed".
	Plan string `json:"memory_plan,omitempty"`
	// Spilled is host memory that holds what the limit leaves no room for.
	Spilled int64 `json:"spilled_bytes,omitempty"`
}

// Kind implements Event.
func (GPUUsed) Kind() string { return "gpu" }
