package summary

// What tests outside of the package compare with.
const (
	FirstRequest    = firstRequest
	MostSummary     = mostSummary
	SummaryPatience = summaryPatience
	MaxSummarized   = maxSummarized
	MaxAnswerChars  = maxAnswerChars
)
