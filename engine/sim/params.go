package sim

// paramServers is all of them: they make version e+1 when all gradients of epoch e are
// there and version e is made, each its part of it.
type paramServers struct {
	r      *run
	hosts  []*machine
	pushes int           // per epoch, to each of them
	got    []map[int]int // by parameter server: pushes by epoch
	made   []int         // by parameter server: its version
	busy   []bool
}

func newParamServers(r *run) *paramServers {
	p := &paramServers{r: r}
	hosts := r.cfg.Params.Hosts
	if len(hosts) == 0 {
		hosts = []int{0}
	}
	for _, h := range hosts {
		m := &machine{q: &r.q, cores: 1, idle: 1}
		if h >= 0 {
			m = r.servers[h].machine
		}
		p.hosts = append(p.hosts, m)
		p.got = append(p.got, map[int]int{})
	}
	p.made, p.busy = make([]int, len(hosts)), make([]bool, len(hosts))
	for _, s := range r.servers {
		for _, n := range s.push {
			if n > 0 {
				p.pushes++
			}
		}
	}
	return p
}

// push brings gradients of an epoch from a server to all parameter servers.
func (p *paramServers) push(s *server, bytes int64, epoch int) {
	for k, host := range p.hosts {
		p.r.net.send(s.machine, host, share(bytes, len(p.hosts), k), func() {
			p.got[k][epoch]++
			p.update(k)
		})
	}
}

// share is part k of bytes in so many parts.
func share(bytes int64, parts, k int) int64 {
	n, more := bytes/int64(parts), bytes%int64(parts)
	if int64(k) < more {
		n++
	}
	return n
}

// update makes the next version of part k, if all is there for it.
func (p *paramServers) update(k int) {
	epoch := p.made[k]
	if p.busy[k] || p.got[k][epoch] < p.pushes {
		return
	}
	p.busy[k] = true
	delete(p.got[k], epoch)
	took := instantOf(p.r.cfg.Params.Update / float64(len(p.hosts)))
	p.hosts[k].do(true, job{took: took, done: func() {
		p.made[k], p.busy[k] = epoch+1, false
		p.r.updating += took
		for _, s := range p.r.servers {
			p.r.net.send(p.hosts[k], s.machine, share(p.r.cfg.Params.Weights, len(p.hosts), k), func() { s.weights(epoch + 1) })
		}
		p.update(k)
	}})
}
