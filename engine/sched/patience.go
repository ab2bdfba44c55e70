package sched

// Patience is how long the idle cores of an asynchronous run wait for rows and weights of
// their own epoch, before an Input.Idle has them go on with older ones: for a share of the
// time that passes. What is not used is kept for later, up to that share of an epoch, so
// that who meets a slow server waits for it once, and not in each task.
//
// It has no clock: all moments are told, in seconds from the start. Waiting for a moment costs a balanced cluster
// little and saves it most of the stale rows; a server that is really slow holds the
// others up for no more than the share.
type Patience struct {
	share   float64
	at      float64 // the moment of what follows
	left    float64 // may be waited
	most    float64 // that left may reach; 0: no limit yet
	waiting bool    // from then on
}

// NewPatience waits for so large a share of the time; 0: never.
func NewPatience(share float64) *Patience { return &Patience{share: share} }

// Epoch notes how long an epoch took.
func (p *Patience) Epoch(took float64) { p.most = p.share * took }

// Ask is told, at moment now, how many cores wait, and says whether they have waited
// enough. If not, they will have after so much longer, unless they hear something before;
// 0: nobody waits, or for as long as it takes.
func (p *Patience) Ask(now float64, waiting int) (enough bool, longer float64) {
	passed := now - p.at
	p.at = now
	if p.waiting {
		p.left -= passed * (1 - p.share) // time that is waited earns its share, too
	} else {
		p.left += passed * p.share
	}
	if p.most > 0 {
		p.left = min(p.left, p.most)
	}
	if p.left < 1e-9 {
		p.left = 0
	}
	p.waiting = waiting > 0 && (p.left > 0 || p.share == 1)
	switch {
	case !p.waiting:
		return waiting > 0, 0
	case p.share == 1:
		return false, 0
	}
	return false, p.left / (1 - p.share)
}
