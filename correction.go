package continuo

// Correction is how the token counts that a provider reported compare with the estimates of the same requests.
type Correction struct {
	// Ratio is the newest report as a part of its estimate, in millionths: the next request is most like that one. A report
	// that is far from those before counts only when a second one agrees with it.
	Ratio int `json:"ratio"`
	// Spread is how far reports were from what the reports before them predicted, on average, in millionths of them.
	Spread int `json:"spread,omitempty"`
	// Reports is how many reports there were.
	Reports int `json:"reports"`
	// Doubted is the ratio of the newest report, where it is far from those before and changed nothing yet; 0 where it is not.
	Doubted int `json:"doubted,omitempty"`
}

// million is the unit of a Correction's fields.
const million = 1_000_000

// The bounds of a Correction's ratio: a provider that reports less than this counts only a part of its requests, such as
// those that its cache did not have.
const (
	leastRatio = million * 6 / 10
	mostRatio  = million * 4
)

// mostReported bounds a report, which may be imported, so that no product overflows.
const mostReported = 1 << 40

// farOff is how far a report is from what those before predicted, so that it is doubted: some providers count only a part of
// a request now and then, such as its messages without the tools. A second one that agrees with it is believed.
const farOff = million / 3

// newestReports bounds how many reports an average is made of.
const newestReports = 8

// With returns the correction after another report. It depends on integers only, so that every machine has the same.
func (c Correction) With(estimated, reported int) Correction {
	if estimated <= 0 || reported <= 0 {
		return c
	}
	reported = min(reported, mostReported)
	ratio := min(max(int(int64(reported)*million/int64(estimated)), leastRatio), mostRatio)
	if c.Reports == 0 {
		return Correction{Ratio: ratio, Reports: 1}
	}
	missed := apart(ratio, c.Ratio)
	c.Spread += (missed - c.Spread) / min(c.Reports, newestReports)
	agrees := missed <= farOff || c.Doubted > 0 && apart(ratio, c.Doubted) <= farOff
	if agrees || c.Reports == 1 && ratio > c.Ratio { // a first report on a part of a request is lower than the second
		c.Ratio, c.Doubted = ratio, 0
	} else {
		c.Doubted = ratio
	}
	c.Reports++
	return c
}

// apart is how far a ratio is from another one, in millionths of the other one.
func apart(ratio, other int) int {
	difference := ratio - other
	if difference < 0 {
		difference = -difference
	}
	return int(int64(difference) * million / int64(other))
}

// Tokens is what a provider will probably report for an estimate.
func (c Correction) Tokens(estimated int) int {
	if c.Reports == 0 {
		return estimated
	}
	return int((int64(min(estimated, mostReported))*int64(c.Ratio) + million/2) / million)
}

// Estimated is the estimate for which a provider will probably report so many tokens.
func (c Correction) Estimated(reported int) int {
	if c.Reports == 0 {
		return reported
	}
	return int(int64(min(reported, mostReported)) * million / int64(max(c.Ratio, leastRatio)))
}

// Checked is the correction, or none where it is not one that With makes.
func (c Correction) Checked() Correction {
	if c.Reports < 1 || c.Ratio < leastRatio || c.Ratio > mostRatio || c.Spread < 0 ||
		c.Doubted != 0 && (c.Doubted < leastRatio || c.Doubted > mostRatio) {
		return Correction{}
	}
	return c
}
