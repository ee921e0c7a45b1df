package continuo

// giveWay drops half of the cache, those conversations that were not read for the longest time, for each run of the
// collector after which the process is near its memory limit. The caller holds the lock.
func (c *entryCache) giveWay() {
	p := c.pressure()
	if p.Cycle == c.cycle {
		return
	}
	c.cycle = p.Cycle
	if !p.IsHigh() {
		return
	}
	for half := c.bytes / 2; c.bytes > half; {
		c.removeOldest()
	}
}
