package main

import (
	"testing"

	"dorylus/cluster/member"
	"dorylus/engine"
	"dorylus/engine/cost"
	"dorylus/engine/sink"
)

// billed sums what a listener hears of Lambda.
type billed struct{ ms int64 }

func (b *billed) Event(e engine.Event) {
	if u, ok := e.(engine.LambdaUsed); ok {
		b.ms += u.BilledMS
	}
}

// Each bill counts once, whichever of those that tell of it arrive, before the last.
func TestBillsAreHeardOfOnce(t *testing.T) {
	for lost := range 8 {
		other := newReporter(&seat{Membership: member.Membership{Role: member.Graph, Rank: 1}}, &billed{})
		sum := &billed{}
		leader := newReporter(&seat{Membership: member.Membership{Role: member.Graph}}, sum)
		want := int64(0)
		for i := range 3 {
			other.Event(engine.LambdaUsed{BilledMS: 10 + int64(i)})
			want += 10 + int64(i)
			data, err := other.spent()
			if err != nil {
				t.Fatal(err)
			}
			if lost>>i&1 == 0 {
				if err := leader.hear(1, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		if lost == 0 && sum.ms != want {
			t.Errorf("%d ms were heard of while the run went on, want %d", sum.ms, want)
		}
		data, err := other.billsFrom(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.hear(1, data); err != nil || sum.ms != want {
			t.Errorf("lost %03b: %d ms, %v, want %d", lost, sum.ms, err, want)
		}
	}
}

// Invocations that are under way count for --max-cost on whichever server they are, and
// once they are billed no longer.
func TestInvocationsOfOthersCount(t *testing.T) {
	table, err := cost.Load("")
	if err != nil {
		t.Fatal(err)
	}
	rates, err := table.Price(cost.Servers{Graph: cost.DefaultInstance("lambda"), Graphs: 1, Lambda: true})
	if err != nil {
		t.Fatal(err)
	}
	tally := sink.NewTally()
	tally.Event(engine.RunStart{Rates: rates})
	leader := newReporter(&seat{Membership: member.Membership{Role: member.Graph}}, tally)
	var others []*reporter
	for rank := 1; rank < 3; rank++ {
		others = append(others, newReporter(&seat{Membership: member.Membership{Role: member.Graph, Rank: rank}}, &billed{}))
	}
	const arch, mb = "x86_64", 1024
	held := func(seconds int64) engine.LambdaHeld {
		return engine.LambdaHeld{MBms: map[string]int64{arch: mb * 1000 * seconds}, Invocations: 1}
	}
	tell := func() {
		t.Helper()
		for i, o := range others {
			data, err := o.spent()
			if err == nil {
				err = leader.hear(i+1, data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	costs := func(what string, seconds, requests int64) {
		t.Helper()
		want := cost.Usage{LambdaMBms: map[string]int64{arch: mb * 1000 * seconds}, Requests: requests}.Bill(rates)
		if got := tally.Bill(); got != want {
			t.Errorf("%s: the bill is %+v, want %+v", what, got, want)
		}
		total, _ := want.Total()
		for _, limit := range []struct {
			dollars float64
			over    string
		}{{total.USD() * 0.99, overBudget}, {total.USD() * 1.01, ""}} {
			if got := (&biller{limit: limit.dollars}).stop(tally)(); got != limit.over {
				t.Errorf("%s, which costs %v: with --max-cost=%v it stops by %q, want %q", what, total, limit.dollars, got, limit.over)
			}
		}
	}
	leader.Event(held(100))
	others[0].Event(held(1))
	others[0].Event(held(1000))
	others[1].Event(held(500))
	tell()
	costs("while all three run", 1600, 3)
	others[1].Event(held(700))
	tell()
	costs("a while later", 1800, 3)
	for _, o := range others {
		o.Event(engine.LambdaUsed{MemoryMB: mb, Arch: arch, BilledMS: 2000 * 1000})
		o.Event(engine.LambdaHeld{})
	}
	tell()
	costs("when those of the others are billed", 4100, 3)
}
