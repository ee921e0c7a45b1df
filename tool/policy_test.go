package tool_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

func list(patterns ...string) []string { return patterns }

func TestThePolicyDecides(t *testing.T) {
	files := tool.Policy{Allow: list("fs.*"), Ask: list("fs.write*"), Deny: list("fs.*delete*", "shell")}
	for _, c := range []struct {
		name   string
		policy tool.Policy
		want   map[string]tool.Decision
	}{
		{"zero", tool.Policy{}, map[string]tool.Decision{"fs.read": tool.Ask, "": tool.Ask}},
		{"otherwise allow", tool.Policy{Otherwise: tool.Allow, Ask: list("a")}, map[string]tool.Decision{"a": tool.Ask, "b": tool.Allow}},
		{"otherwise deny", tool.Policy{Otherwise: tool.Deny, Allow: list("a"), Ask: list("b")}, map[string]tool.Decision{"a": tool.Allow, "b": tool.Ask, "c": tool.Deny}},
		{"unknown otherwise", tool.Policy{Otherwise: "maybe", Allow: list("a")}, map[string]tool.Decision{"a": tool.Allow, "b": tool.Deny}},
		{"lists", files, map[string]tool.Decision{
			"fs.read": tool.Allow, "fs.write_file": tool.Ask, "fs.delete": tool.Deny, "fs.write_and_delete_x": tool.Deny, "shell": tool.Deny, "shell2": tool.Ask,
		}},
		{"deny beats a narrower allow", tool.Policy{Allow: list("fs.read"), Deny: list("*")}, map[string]tool.Decision{"fs.read": tool.Deny}},
		{"ask beats a narrower allow", tool.Policy{Allow: list("fs.read"), Ask: list("fs.*")}, map[string]tool.Decision{"fs.read": tool.Ask}},
		{"merged", files.Merge(tool.Policy{Allow: list("fs.read", "shell"), Otherwise: tool.Deny}), map[string]tool.Decision{
			"fs.read": tool.Allow, "fs.list": tool.Deny, "fs.write_file": tool.Deny, "shell": tool.Deny,
		}},
		{"merged with one that leaves the choice", files.Merge(tool.Policy{Otherwise: tool.Allow}), map[string]tool.Decision{"fs.read": tool.Allow, "fs.write": tool.Ask}},
		{"merged with zero", files.Merge(tool.Policy{}), map[string]tool.Decision{"fs.read": tool.Ask, "shell": tool.Deny}},
	} {
		for name, want := range c.want {
			if got := c.policy.Decide(name); got != want {
				t.Errorf("%s: %q is decided %s, want %s", c.name, name, got, want)
			}
		}
	}
}

func TestPatternsMatchWholeNames(t *testing.T) {
	for pattern, c := range map[string]struct{ yes, no []string }{
		"fs.read":  {list("fs.read"), list("fs.reader", "xfs.read", "fs_read", "FS.READ", "")},
		"fs.*":     {list("fs.read", "fs."), list("fs", "afs.read", "fs_read")},
		"*":        {list("", "fs.read", "a/b:c"), nil},
		"*.read":   {list("fs.read", ".read", "a.read.read"), list("fs.read2", "read")},
		"a*b*c":    {list("abc", "axbyc", "abcbc", "abbc"), list("ab", "acb", "abcd", "xabc")},
		"a*a":      {list("aa", "aba"), list("a")},
		"a**b":     {list("ab", "axb"), list("a")},
		"*get*":    {list("get", "forgetful"), list("gt")},
		"x.*.list": {list("x.y.list", "x..list"), list("x.list")},
	} {
		policy := tool.Policy{Allow: list(pattern)}
		for _, name := range c.yes {
			if policy.Decide(name) != tool.Allow {
				t.Errorf("%s does not match %q", pattern, name)
			}
		}
		for _, name := range c.no {
			if policy.Decide(name) == tool.Allow {
				t.Errorf("%s matches %q", pattern, name)
			}
		}
	}
}

func TestCheckFindsWhatCannotBeMeant(t *testing.T) {
	for _, good := range []tool.Policy{
		{},
		{Allow: list("fs.read", "fs.*"), Ask: list("*"), Deny: list("mcp-server/tool_1:x"), Otherwise: tool.Deny},
		tool.Policy{Otherwise: tool.Allow}.Merge(tool.Policy{Otherwise: tool.Ask}),
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]tool.Policy{
		"allow: a pattern is empty":     {Allow: list("")},
		`ask: the pattern "fs.{a}"`:     {Ask: list("fs.read", "fs.{a}")},
		`deny: the pattern "fs.?"`:      {Deny: list("fs.?")},
		`deny: the pattern "two words"`: {Deny: list("two words")},
		"more than the limit of 200":    {Deny: list(strings.Repeat("x", 201))},
		`there is no decision "maybe"`:  {Otherwise: "maybe"},
		`deny: the pattern "!"`:         tool.Policy{}.Merge(tool.Policy{Deny: list("!")}),
	} {
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad, err, want)
		}
	}
}

// named is a tool that has only a name.
type named string

func (n named) Spec() continuo.ToolSpec                    { return continuo.ToolSpec{Name: string(n)} }
func (n named) Run(context.Context, tool.Call) tool.Result { return tool.Result{} }

func TestDeniedToolsAreNotOffered(t *testing.T) {
	set := tool.Set{named("b"), named("a"), named("c")}
	policy := tool.Policy{Allow: list("b"), Deny: list("a*"), Otherwise: tool.Ask}
	if got, want := policy.Offered(set), (tool.Set{named("b"), named("c")}); !slices.Equal(got, want) {
		t.Errorf("offered %v, want %v", got, want)
	}
}

// randomPolicy makes policies whose patterns meet the names often.
func randomPolicy(random *rand.Rand) tool.Policy {
	patterns := func() []string {
		some := list("a", "b", "a.b", "a.*", "*.b", "*", "a*", "c")
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		return some[:random.IntN(3)]
	}
	policy := tool.Policy{Allow: patterns(), Ask: patterns(), Deny: patterns()}
	policy.Otherwise = []tool.Decision{"", tool.Allow, tool.Ask, tool.Deny}[random.IntN(4)]
	if random.IntN(4) == 0 {
		policy = policy.Merge(randomPolicy(random))
	}
	return policy
}

func TestMergingIsCommutativeAndAssociativeAndNeverLaxer(t *testing.T) {
	care := map[tool.Decision]int{tool.Allow: 0, tool.Ask: 1, tool.Deny: 2}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[tool.Decision]int{}
	for range 3000 {
		a, b, c := randomPolicy(random), randomPolicy(random), randomPolicy(random)
		for _, name := range list("a", "b", "a.b", "a.c", "c", "x.b", "") {
			merged := a.Merge(b).Decide(name)
			seen[merged]++
			if care[merged] != max(care[a.Decide(name)], care[b.Decide(name)]) {
				t.Fatalf("%q: %s and %s give %s\n%+v\n%+v", name, a.Decide(name), b.Decide(name), merged, a, b)
			}
			if back := b.Merge(a).Decide(name); back != merged {
				t.Fatalf("%q: %s, the other way round %s\n%+v\n%+v", name, merged, back, a, b)
			}
			left, right := a.Merge(b).Merge(c).Decide(name), a.Merge(b.Merge(c)).Decide(name)
			if left != right {
				t.Fatalf("%q: (ab)c gives %s, a(bc) %s\n%+v\n%+v\n%+v", name, left, right, a, b, c)
			}
			if same := a.Merge(a).Decide(name); same != a.Decide(name) {
				t.Fatalf("%q: merged with itself %s, alone %s", name, same, a.Decide(name))
			}
		}
	}
	for decision := range care {
		if seen[decision] < 100 {
			t.Errorf("only %d merged policies decide %s: the test shows nothing about it", seen[decision], decision)
		}
	}
}

func TestMergingLeavesItsPartsAsTheyWere(t *testing.T) {
	base := tool.Policy{Otherwise: tool.Allow}.Merge(tool.Policy{Otherwise: tool.Allow}).Merge(tool.Policy{Otherwise: tool.Allow})
	strict := base.Merge(tool.Policy{Otherwise: tool.Deny})
	lax := base.Merge(tool.Policy{Otherwise: tool.Ask})
	if strict.Decide("x") != tool.Deny || lax.Decide("x") != tool.Ask || base.Decide("x") != tool.Allow {
		t.Errorf("strict %s, lax %s, base %s", strict.Decide("x"), lax.Decide("x"), base.Decide("x"))
	}
}
