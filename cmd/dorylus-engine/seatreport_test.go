package main

import (
	"testing"

	"dorylus/cluster/member"
	"dorylus/engine"
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
