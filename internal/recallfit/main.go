// Command recallfit fits the weights of package recall to annotated questions, and writes recall/weights.go:
//
//	go run ./internal/recallfit -write recall/weights.go locomo.jsonl.gz beam.jsonl.gz
//
// Without -write it cross-validates: each of five parts of the conversations is ranked with weights that were fitted to
// the others, and chosen at the cost in tokens of o200k that the view recall has for a message, with seq, speaker and day. With
// -view recall the view itself is measured, with -view continuity what turns recall: for each part, continuo eval recall is
// built with the weights of the others.
//
// The weights minimize, with an L2 penalty, by Newton's method, the sum of two losses: the logarithmic loss of the probability
// that a message is evidence, and that of the evidence among the messages of its question (the softmax of their scores). Each
// file counts as much as the others.
package main

import (
	"flag"
	"fmt"
	"go/format"
	"log"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/token"
)

const folds = 5

// question is one question with the features of all messages.
type question struct {
	file, fold int
	named      bool
	category   string
	rows       []float32
	cost       []int // of the text
	lines      []int // of the text as it is shown
	days       []int
	positive   []bool
	evidence   []int
	weight     float64
}

func main() {
	write := flag.String("write", "", "fit to everything, and write the weights to this file")
	penalty := flag.Float64("l2", 10, "L2 penalty")
	shared := flag.Float64("own", 30, "L2 penalty of what the two kinds of conversations differ by; 0: one set of weights")
	view := flag.String("view", "", "cross-validate through a view: recall, or another one with its own limits")
	flag.Parse()
	all, err := loadAll(flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	f := fitter{penalty: *penalty, own: *shared}
	if *write != "" {
		w := f.fit(all, func(*question) bool { return true })
		if err := os.WriteFile(*write, table(w), 0o644); err != nil {
			log.Fatal(err)
		}
		report("fitted", all, func(*question) *model { return w }, flag.Args())
		return
	}
	if *view != "" {
		if err := f.throughView(all, flag.Args(), *view); err != nil {
			log.Fatal(err)
		}
		return
	}
	report("cross-validated", all, f.crossValidate(all), flag.Args())
}

// crossValidate returns for each question a model that was fitted without its conversation.
func (f fitter) crossValidate(all []*question) func(*question) *model {
	var models [folds]*model
	for k := range folds {
		models[k] = f.fit(all, func(q *question) bool { return q.fold != k })
	}
	return func(q *question) *model { return models[q.fold] }
}

// loadAll reads files, each of which counts as much as the others.
func loadAll(paths []string) ([]*question, error) {
	var all []*question
	for i, path := range paths {
		questions, err := load(path, i)
		if err != nil {
			return nil, err
		}
		for _, q := range questions {
			q.weight = 1000 / float64(len(questions))
		}
		all = append(all, questions...)
	}
	return all, nil
}

func load(path string, file int) ([]*question, error) {
	conversations, err := evidence.Load(path)
	if err != nil {
		return nil, err
	}
	var questions []*question
	for k := range conversations {
		c := &conversations[k]
		documents := c.Documents()
		lines, days := make([]int, len(documents)), make([]int, len(documents))
		for i := range documents {
			d := &documents[i]
			d.Tokens = token.O200k().Count(d.Text)
			entry := continuo.Entry{Seq: d.Seq, Role: d.Role, Name: d.Speaker, Content: continuo.Text(d.Text)}
			lines[i] = token.O200k().Count(recalls.Line(&entry))
			days[i] = int(d.At.Unix() / 86_400)
		}
		corpus := recall.NewCorpus(recall.Statistics{}, documents)
		for _, asked := range c.Questions {
			if len(asked.Evidence) == 0 {
				continue
			}
			q := &question{
				file: file, fold: k % folds, named: documents[0].Speaker != "", category: asked.Category, evidence: asked.Evidence,
				lines: lines, days: days, positive: make([]bool, len(documents)),
			}
			for _, i := range asked.Evidence {
				q.positive[i] = true
			}
			corpus.Features(asked.Question, func(i int, row *recall.Row) {
				for _, value := range row {
					q.rows = append(q.rows, float32(value)/65536)
				}
				q.cost = append(q.cost, documents[i].Tokens)
			})
			questions = append(questions, q)
		}
	}
	return questions, nil
}

const width = len(recall.Names) + 1

// model has weights for both kinds of conversations: all, and what is added where speakers are named or are not.
type model struct{ tables [2][width]float64 }

type fitter struct{ penalty, own float64 }

// size is the number of parameters.
func (f fitter) size() int {
	if f.own == 0 {
		return width
	}
	return 3 * width
}

// The first steps minimize the loss of the probabilities alone: the other one needs a start that is not far from its end, and
// smaller steps.
const (
	steps   = 20
	alone   = 6
	damping = 100
)

// fit minimizes the loss on the questions that are chosen.
func (f fitter) fit(all []*question, chosen func(*question) bool) *model {
	var training []*question
	for _, q := range all {
		if chosen(q) {
			training = append(training, q)
		}
	}
	groups := [2][]*question{}
	for _, q := range training {
		k := 0
		if q.named {
			k = 1
		}
		groups[k] = append(groups[k], q)
	}
	w := make([]float64, f.size())
	for step := range steps {
		hessian, gradient := f.total(groups, w, step >= alone)
		if step >= alone {
			for i := range w {
				hessian[i][i] += damping
			}
		}
		solve(hessian, gradient)
		for i := range w {
			w[i] -= gradient[i]
		}
	}
	m := &model{}
	for k := range m.tables {
		for j := range width {
			m.tables[k][j] = w[j]
			if f.own > 0 {
				m.tables[k][j] += w[width*(k+1)+j]
			}
		}
		calibrate(groups[k], &m.tables[k])
	}
	return m
}

// calibrate scales and shifts scores so that they are probabilities again, which keeps their order.
func calibrate(questions []*question, w *[width]float64) {
	scale, shift := 1.0, 0.0
	var scores, weights []float64
	var positive []bool
	for _, q := range questions {
		for i := range q.cost {
			if weight := q.weightOf(i); weight > 0 {
				scores, weights, positive = append(scores, q.score(i, w)), append(weights, weight), append(positive, q.positive[i])
			}
		}
	}
	for range steps {
		var gradient [2]float64
		hessian := [2][2]float64{{1e-6, 0}, {0, 1e-6}}
		for i, z := range scores {
			p := 1 / (1 + math.Exp(-scale*z-shift))
			wrong, slope := p, weights[i]*p*(1-p)
			if positive[i] {
				wrong--
			}
			gradient[0] += weights[i] * wrong * z
			gradient[1] += weights[i] * wrong
			hessian[0][0] += slope * z * z
			hessian[0][1] += slope * z
			hessian[1][1] += slope
		}
		determinant := hessian[0][0]*hessian[1][1] - hessian[0][1]*hessian[0][1]
		if determinant <= 0 {
			break
		}
		scale -= (gradient[0]*hessian[1][1] - gradient[1]*hessian[0][1]) / determinant
		shift -= (gradient[1]*hessian[0][0] - gradient[0]*hessian[0][1]) / determinant
	}
	for j := range w {
		w[j] *= scale
	}
	w[0] += shift
}

// score is the weighted sum of a message's features.
func (q *question) score(i int, w *[width]float64) float64 {
	z := w[0]
	for j, value := range q.rows[i*(width-1) : (i+1)*(width-1)] {
		z += w[j+1] * float64(value)
	}
	return z
}

// weightOf is how much a message counts. Those that are no evidence are many: every fourth counts fourfold, the others not at
// all.
func (q *question) weightOf(i int) float64 {
	switch {
	case q.positive[i]:
		return q.weight / math.Pow(float64(len(q.evidence)), .8)
	case i%4 == len(q.evidence)%4:
		return 4 * q.weight
	}
	return 0
}

// total returns the derivatives for both kinds of conversations, with the penalty. The common part and the two differences
// are one regression in which the rows of a kind have zeros in the columns of the other.
func (f fitter) total(groups [2][]*question, w []float64, isListed bool) ([][]float64, []float64) {
	hessian, gradient := matrix(len(w)), make([]float64, len(w))
	for k := range groups {
		offsets := []int{0}
		if f.own > 0 {
			offsets = append(offsets, width*(k+1))
		}
		var at [width]float64
		for _, offset := range offsets {
			for j := range width {
				at[j] += w[offset+j]
			}
		}
		h, g := derive(groups[k], &at, isListed)
		for _, a := range offsets {
			for i := range width {
				gradient[a+i] += g[i]
				for _, b := range offsets {
					for j := range width {
						hessian[a+i][b+j] += h[i][j]
					}
				}
			}
		}
	}
	for i := range w {
		penalty := f.penalty
		switch {
		case i%width == 0:
			penalty = 1e-3 // of the constants
		case i >= width:
			penalty = f.own
		}
		gradient[i] += penalty * w[i]
		hessian[i][i] += penalty
	}
	return hessian, gradient
}

func matrix(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// derive returns the second and first derivatives of the loss.
func derive(questions []*question, w *[width]float64, isListed bool) ([][]float64, []float64) {
	workers := runtime.GOMAXPROCS(0)
	hessians, gradients := make([][][]float64, workers), make([][]float64, workers)
	var wait sync.WaitGroup
	for worker := range workers {
		hessians[worker], gradients[worker] = matrix(width), make([]float64, width)
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := worker; i < len(questions); i += workers {
				deriveOne(questions[i], w, hessians[worker], gradients[worker])
				if isListed {
					deriveList(questions[i], w, hessians[worker], gradients[worker])
				}
			}
		}()
	}
	wait.Wait()
	for k := 1; k < workers; k++ {
		for i := range width {
			gradients[0][i] += gradients[k][i]
			for j := range width {
				hessians[0][i][j] += hessians[k][i][j]
			}
		}
	}
	for i := range width {
		for j := range i {
			hessians[0][i][j] = hessians[0][j][i]
		}
	}
	return hessians[0], gradients[0]
}

func deriveOne(q *question, w *[width]float64, hessian [][]float64, gradient []float64) {
	row := [width]float64{0: 1}
	var used [width]int
	for i := range q.cost {
		weight := q.weightOf(i)
		if weight == 0 {
			continue
		}
		z, n := w[0], 1
		used[0] = 0
		for j, value := range q.rows[i*(width-1) : (i+1)*(width-1)] {
			if value != 0 {
				row[j+1] = float64(value)
				z += w[j+1] * float64(value)
				used[n] = j + 1
				n++
			}
		}
		p := 1 / (1 + math.Exp(-z))
		wrong := p
		if q.positive[i] {
			wrong = p - 1
		}
		slope := weight * p * (1 - p)
		for a := range n {
			ja := used[a]
			gradient[ja] += weight * wrong * row[ja]
			s := slope * row[ja]
			line := hessian[ja]
			for b := a; b < n; b++ {
				line[used[b]] += s * row[used[b]]
			}
		}
	}
}

// deriveList adds the derivatives of the loss of the evidence among the messages of the question.
func deriveList(q *question, w *[width]float64, hessian [][]float64, gradient []float64) {
	shares := q.softmax(w)
	var mean [width]float64
	var used [width]int
	for i, share := range shares {
		wrong := share
		if q.positive[i] {
			wrong -= 1 / float64(len(q.evidence))
		}
		row := q.rows[i*(width-1) : (i+1)*(width-1)]
		n := 0
		for j, value := range row {
			if value != 0 {
				used[n] = j
				n++
				mean[j+1] += share * float64(value)
				gradient[j+1] += q.weight * wrong * float64(value)
			}
		}
		if share < 1e-4 {
			continue
		}
		for a := range n {
			slope := q.weight * share * float64(row[used[a]])
			line := hessian[used[a]+1]
			for b := a; b < n; b++ {
				line[used[b]+1] += slope * float64(row[used[b]])
			}
		}
	}
	for a := 1; a < width; a++ {
		for b := a; b < width; b++ {
			hessian[a][b] -= q.weight * mean[a] * mean[b]
		}
	}
}

// softmax returns the share of each message in the sum of the exponentials of the scores.
func (q *question) softmax(w *[width]float64) []float64 {
	shares := make([]float64, len(q.cost))
	for i := range shares {
		shares[i] = q.score(i, w)
	}
	top, sum := slices.Max(shares), 0.0
	for i := range shares {
		shares[i] = math.Exp(shares[i] - top)
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}

// solve replaces b by the solution of ax = b for a positive definite matrix, which it overwrites.
func solve(a [][]float64, b []float64) {
	n := len(b)
	for i := range n {
		for j := range i + 1 {
			sum := a[i][j]
			for k := range j {
				sum -= a[i][k] * a[j][k]
			}
			if i == j {
				a[i][i] = math.Sqrt(math.Max(sum, 1e-9))
			} else {
				a[i][j] = sum / a[j][j]
			}
		}
	}
	for i := range n {
		for k := range i {
			b[i] -= a[i][k] * b[k]
		}
		b[i] /= a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			b[i] -= a[k][i] * b[k]
		}
		b[i] /= a[i][i]
	}
}

// order ranks the messages of a question.
func (m *model) order(q *question) []int {
	w := &m.tables[0]
	if q.named {
		w = &m.tables[1]
	}
	values := make([]float64, len(q.cost))
	order := make([]int, len(q.cost))
	for i := range order {
		order[i] = i
		values[i] = 1 / (1 + math.Exp(-q.score(i, w))) / float64(60+q.cost[i]) // see recall.Scored.Value
	}
	sort.SliceStable(order, func(a, b int) bool { return values[order[a]] > values[order[b]] })
	return order
}

// The tokens of a line with a day, and what the first one has more for its year.
const dayTokens, yearTokens = 3, 3

// take takes messages in an order as the view recall does.
func (q *question) take(order []int, budget int) map[int]bool {
	taken, days := map[int]bool{}, map[int]bool{}
	left := budget - yearTokens
	for _, i := range order {
		tokens := q.lines[i]
		if !days[q.days[i]] {
			tokens += dayTokens
		}
		if tokens <= left {
			left -= tokens
			taken[i], days[q.days[i]] = true, true
		}
	}
	return taken
}

var budgets = []int{1000, 2000, 4000, 8000}

// measure scores the questions of a file by budget, and for 2 000 tokens by category.
func measure(all []*question, file int, model func(*question) *model) (map[int]*evidence.Score, map[string]*evidence.Score) {
	total, categories := map[int]*evidence.Score{}, map[string]*evidence.Score{}
	for _, q := range all {
		if q.file != file {
			continue
		}
		order := model(q).order(q)
		for _, budget := range budgets {
			taken := q.take(order, budget)
			if total[budget] == nil {
				total[budget] = &evidence.Score{}
			}
			total[budget].Add(q.evidence, func(i int) bool { return taken[i] })
			if budget != 2000 {
				continue
			}
			if categories[q.category] == nil {
				categories[q.category] = &evidence.Score{}
			}
			categories[q.category].Add(q.evidence, func(i int) bool { return taken[i] })
		}
	}
	return total, categories
}

func report(name string, all []*question, model func(*question) *model, files []string) {
	for file, path := range files {
		total, categories := measure(all, file, model)
		fmt.Printf("%s %s:", name, filepath.Base(path))
		for _, budget := range budgets {
			r, f := total[budget].Means()
			fmt.Printf("  %d %.3f/%.3f", budget, r, f)
		}
		fmt.Println()
		for _, category := range slices.Sorted(maps.Keys(categories)) {
			r, f := categories[category].Means()
			fmt.Printf("    %-26s %4d  %.3f/%.3f\n", category, categories[category].Questions, r, f)
		}
	}
}

// table writes the weights as Go.
func table(m *model) []byte {
	var out strings.Builder
	out.WriteString(`// Code generated by internal/recallfit; DO NOT EDIT.

package recall

// weights has, in units of 1/65536, a constant and a weight for each feature: first those for conversations whose messages
// do not name their speakers, then those for conversations whose messages do.
var weights = [2][features + 1]int64{
`)
	for k := range m.tables {
		out.WriteString("\t{\n")
		for j, value := range m.tables[k] {
			name := "constant"
			if j > 0 {
				name = recall.Names[j-1]
			}
			fmt.Fprintf(&out, "\t\t%d, // %s\n", int64(math.Round(value*65536)), name)
		}
		out.WriteString("\t},\n")
	}
	out.WriteString("}\n")
	formatted, err := format.Source([]byte(out.String()))
	if err != nil {
		log.Fatal(err)
	}
	return formatted
}
