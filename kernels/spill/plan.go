package spill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dorylus/kernels"
)

// Need is the memory that a run takes on a device for one thing.
type Need struct {
	Name    string // for people; "": the purpose
	Purpose kernels.Purpose
	Bytes   int64 // of all its matrices, with padding
	Rows    int   // of the largest of them
	Each    int64 // bytes of each of its matrices, where they are all of a size; 0: they are not
	Count   int   // of its matrices
	// Up and Down are how often an epoch copies all of it to the device and back, if it
	// lies in host memory.
	Up, Down float64
	// Gathered says that gathers read it: all rows of a tile of columns are staged.
	Gathered bool
	Width    int  // columns that a gather takes together, if more than one: of a head
	Graph    bool // it is the edges themselves or lists of rows, for which there is no streaming
}

// Budget is what a device has.
type Budget struct {
	Device string // "cuda:0"
	Limit  int64  // bytes that may be taken of it
	Free   int64  // bytes that are free on it, and that it has in all; 0: not known
	Total  int64
	Rate   float64 // bytes a second between host and device, each way; 0: DefaultRate
}

// DefaultRate is what PCIe 4.0 with 16 lanes gives pinned memory, about.
const DefaultRate = 25e9

// Verdict is how a run fits a device.
type Verdict uint8

// Verdicts.
const (
	Resident Verdict = iota // everything lies in the device's memory
	Streamed                // some of it lies in host memory
	Refused                 // not even the rest fits
)

func (v Verdict) String() string { return [...]string{"resident", "streamed", "refused"}[v] }

// Item is a need and where it lies.
type Item struct {
	Need
	Spilled bool
}

// Plan is where everything lies.
type Plan struct {
	Budget
	Verdict Verdict
	Items   []Item
	OnGPU   int64 // bytes on the device at the most, without the arena
	Start   int64 // of these what is there for a while only, and in no item
	OnHost  int64 // bytes in pinned host memory
	Arena   int64 // bytes of the device for staging
	Tile    int   // columns of a tile of what is in host memory
	Small   int64 // matrices of fewer bytes stay on the device
	// What crosses in an epoch, and how long it takes at Rate if both directions run
	// at once and nothing else is slower. Estimates.
	Up, Down int64
	Seconds  float64
	Short    int64 // bytes that the limit lacks, if refused
	Alone    bool  // it holds for a device that takes blocks one at a time only

	moments [][]int64
}

// order is what is given up first.
var order = []kernels.Purpose{kernels.Features, kernels.FirstGather, kernels.Published, kernels.Activations, kernels.Gradients}

// MakePlan finds a place for all needs: on the device, or in host memory, of as few
// purposes as possible and, of the last of these, the largest matrices, as few as will do.
// moments are bytes by need, at each moment of the run that was the largest in some way: what
// of them lies on the device has to fit at each. nil: all needs are there all the time.
//
// Purposes come before sizes, since an epoch copies the later ones more often for each
// byte that the device is spared. Of one purpose all are copied about as often, and
// a large matrix takes fewer, longer copies than several small ones.
func MakePlan(b Budget, needs []Need, moments [][]int64) *Plan {
	if b.Rate <= 0 {
		b.Rate = DefaultRate
	}
	p := &Plan{Budget: b, Tile: tiles[0], Small: 64 << 10, moments: moments}
	for _, n := range needs {
		if n.Name == "" {
			n.Name = n.Purpose.String()
		}
		p.Items = append(p.Items, Item{Need: n})
	}
	if moments == nil {
		all := make([]int64, len(needs))
		for i, n := range needs {
			all[i] = n.Bytes
		}
		p.moments = [][]int64{all}
	}
	p.hold()
	if p.OnGPU <= b.Limit {
		return p
	}
	p.Verdict = Streamed
	least := p.OnGPU
	for _, i := range p.candidates() {
		p.Items[i].Spilled = true
		p.hold()
		if p.stage() {
			p.cross()
			return p
		}
		arena, _ := p.arena(tiles[len(tiles)-1])
		least = min(least, p.OnGPU+arena)
	}
	p.Verdict, p.Tile = Refused, tiles[len(tiles)-1]
	p.Short = least - b.Limit
	return p
}

// candidates are the items that may be given up, in the order in which they are.
func (p *Plan) candidates() []int {
	var list []int
	for i, it := range p.Items {
		if slices.Contains(order, it.Purpose) && it.Bytes > 0 && (it.Each == 0 || it.Each >= p.Small) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := p.Items[a], p.Items[b]
		return cmp.Or(cmp.Compare(slices.Index(order, x.Purpose), slices.Index(order, y.Purpose)), cmp.Compare(y.Each, x.Each))
	})
	return list
}

// hold adds up what lies where: of the device at the largest moment.
func (p *Plan) hold() {
	p.OnGPU, p.OnHost = 0, 0
	for _, m := range p.moments {
		sum := int64(0)
		for i, n := range m {
			if !p.Items[i].Spilled {
				sum += n
			}
		}
		p.OnGPU = max(p.OnGPU, sum)
	}
	rest := p.OnGPU
	for _, it := range p.Items {
		if it.Spilled {
			p.OnHost += it.Bytes
		} else {
			rest -= it.Bytes
		}
	}
	p.Start = max(rest, 0)
}

// tiles are the widths to try, the best first: 32 columns are 128 bytes, a cache line.
var tiles = []int{32, 16, 8, 4}

// stage chooses the arena and the tile, and says whether there is room.
func (p *Plan) stage() bool {
	left := p.Limit - p.OnGPU
	for _, t := range tiles {
		least, good := p.arena(t)
		if least <= left {
			p.Tile, p.Arena = t, min(good, left)/grain*grain
			return true
		}
	}
	return false
}

// Lacks is how much less the limit is than what the run takes with everything on the device.
func (p *Plan) Lacks() int64 {
	all := int64(0)
	for _, m := range p.moments {
		sum := int64(0)
		for _, n := range m {
			sum += n
		}
		all = max(all, sum)
	}
	return max(all-p.Limit, 0)
}

// arena is how much staging takes at least, with one piece at a time, and how much is
// good, with several under way.
func (p *Plan) arena(tile int) (least, good int64) {
	least, good = 2<<20, slots*pieceBytes
	for _, it := range p.Items {
		if !it.Spilled {
			continue
		}
		// A tile of it and one of what a gather of it makes; attention also has narrow
		// matrices for all heads, about as wide.
		if it.Gathered {
			width, times := tile, int64(1)
			if it.Width > tile || it.Width > 1 && tile%it.Width > 0 {
				// Heads do not end where tiles do; of several tiles there is also what crosses.
				width, times = roundUp(it.Width, tile)+tile, 2
			}
			one := times * int64(it.Rows) * int64(width) * 4
			least, good = max(least, 3*one+(2<<20)), max(good, (2*slots+2)*one+(2<<20))
		} else {
			least = max(least, int64(kernels.PadCols(4096))*4*slots*4)
		}
	}
	return least, good
}

// cross adds up what is copied.
func (p *Plan) cross() {
	for _, it := range p.Items {
		if it.Spilled {
			p.Up += int64(it.Up * float64(it.Bytes))
			p.Down += int64(it.Down * float64(it.Bytes))
		}
	}
	p.Seconds = float64(max(p.Up, p.Down)) / p.Rate
}

// Everything is a plan that keeps all matrices in host memory, for tests.
func Everything(arena int64, tile int) *Plan {
	p := &Plan{Verdict: Streamed, Arena: arena, Tile: tile}
	for purpose := kernels.Other; purpose <= kernels.Edges; purpose++ {
		p.Items = append(p.Items, Item{Need{Name: purpose.String(), Purpose: purpose}, true})
	}
	return p
}

// Spills says whether matrices of a purpose, of so many bytes, lie in host memory: of one
// that is given up in part, those as large as the smallest that is.
func (p *Plan) Spills(purpose kernels.Purpose, bytes int64) bool {
	return p.Verdict == Streamed && bytes >= p.Small && slices.ContainsFunc(p.Items, func(it Item) bool { return it.Spilled && it.Purpose == purpose && bytes >= it.Each })
}

// Err is why a plan is refused, with the smallest change that would do; nil if it is not.
func (p *Plan) Err() error {
	if p.Verdict != Refused {
		return nil
	}
	need := p.Limit + p.Short
	text := fmt.Sprintf("%s: the run does not fit: %s are needed on the device even with everything else in host memory, and the limit is %s",
		p.Device, size(need), size(p.Limit))
	switch {
	case p.Free == 0 || need <= p.Free:
		text += fmt.Sprintf("; set --gpu-memory=%s or more", mib(need))
	case p.Total > 0 && need <= p.Total:
		text += fmt.Sprintf("; free %s of the device's memory, which others use, and set --gpu-memory=%s", size(need-p.Free), mib(need))
	default:
		text += fmt.Sprintf("; the device has %s: use more partitions, on at least %d devices", size(p.Total), (need+p.Limit-1)/max(p.Limit, 1))
	}
	if e := p.edges(); 2*e > need {
		text += fmt.Sprintf("; %s of that are the edges of the graph with their lists, which are never streamed: more partitions have fewer each", size(e))
	}
	return errors.New(text)
}

// edges is what the graph itself takes.
func (p *Plan) edges() (sum int64) {
	for _, it := range p.Items {
		if it.Graph {
			sum += it.Bytes
		}
	}
	return sum
}

// Place is a thing of a plan and where it lies.
type Place struct {
	Name    string
	Bytes   int64
	Spilled bool
	Sizes   []string // of its matrices, "2 x 1.2 MiB", where only some of a purpose lie there
}

// Places are the items, by name and place. The staging memory is none.
func (p *Plan) Places() []Place {
	var lines []Place
	places := map[string]int{}
	for _, it := range p.Items {
		i := slices.IndexFunc(lines, func(l Place) bool { return l.Name == it.Name && l.Spilled == it.Spilled })
		if it.Bytes == 0 {
			continue
		}
		if i < 0 {
			i = len(lines)
			lines = append(lines, Place{Name: it.Name, Spilled: it.Spilled})
			places[it.Name]++
		}
		lines[i].Bytes += it.Bytes
		if it.Each > 0 {
			lines[i].Sizes = append(lines[i].Sizes, fmt.Sprintf("%d x %s", it.Count, size(it.Each)))
		}
	}
	if p.Start > 0 {
		lines = append(lines, Place{Name: "for a while", Bytes: p.Start})
	}
	slices.SortStableFunc(lines, func(a, b Place) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range lines {
		if places[lines[i].Name] == 1 {
			lines[i].Sizes = nil
		}
	}
	return lines
}

// how is the verdict for people.
func (p *Plan) how() string {
	if p.Verdict == Resident && p.Alone {
		return "resident, blocks summed one at a time"
	}
	return p.Verdict.String()
}

// Brief is the plan in a line: what it comes to, and what lies in host memory.
func (p *Plan) Brief() string {
	text := fmt.Sprintf("memory plan of %s: %s; %s of %s", p.Device, p.how(), size(p.OnGPU+p.Arena), size(p.Limit))
	var host []string
	for _, l := range p.Places() {
		if l.Spilled && p.Verdict == Streamed {
			host = append(host, fmt.Sprintf("%s (%s)", l.Name, size(l.Bytes)))
		}
	}
	if len(host) > 0 {
		text += "; in host memory: " + strings.Join(host, ", ")
	}
	return text
}

// String is the plan for people, a line for each thing.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "memory plan of %s: %s; %s of %s", p.Device, p.how(), size(p.OnGPU+p.Arena), size(p.Limit))
	if p.Total > 0 {
		fmt.Fprintf(&b, " (the device has %s, %s of it free)", size(p.Total), size(p.Free))
	}
	for _, l := range p.Places() {
		where := "device"
		if l.Spilled {
			where = "host"
		}
		if len(l.Sizes) > 0 {
			where += ", " + strings.Join(l.Sizes, ", ")
		}
		fmt.Fprintf(&b, "\n  %-22s %10s  %s", l.Name, size(l.Bytes), where)
	}
	if p.Verdict != Streamed {
		return b.String()
	}
	fmt.Fprintf(&b, "\n  %-22s %10s  device", "staging", size(p.Arena))
	fmt.Fprintf(&b, "\nan epoch copies %s to the device and %s back: %.3g s at %.0f GB/s each way (estimate)", size(p.Up), size(p.Down), p.Seconds, p.Rate/1e9)
	return b.String()
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// mib is n rounded up, as --gpu-memory takes it.
func mib(n int64) string { return fmt.Sprintf("%dMiB", (n+(1<<20)-1)>>20) }
