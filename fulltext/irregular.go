package fulltext

import "strings"

// irregular maps the irregular forms of English words to the form that the stemmer reads. A form that is more often
// another word (ground, wound, bore) is left out.
var irregular = forms(`
arise arose arisen; awake awoke awoken; bear born borne; beat beaten; become became; begin began begun; bend bent; bind bound;
bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built; burn burnt;
buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn;
dream dreamt; drink drank drunk; drive drove driven; dwell dwelt; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought;
find found; flee fled; fling flung; fly flew flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven;
freeze froze frozen; get got gotten; give gave given; go goes went gone; grind ground; grow grew grown; hang hung; hear heard; hide hid hidden;
hold held; keep kept; kneel knelt; know knew known; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent;
light lit; lose lost; make made; mean meant; meet met; mislead misled; mistake mistook mistaken; misunderstand misunderstood;
overcome overcame; overdo overdid overdone; oversee oversaw overseen; overtake overtook overtaken; override overrode overridden;
pay paid; prove proven; rebuild rebuilt; redo redid redone; rethink rethought; rewrite rewrote rewritten; ride rode ridden;
ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; sew sewn; shake shook shaken; shave shaven;
shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; smell smelt;
speak spoke spoken; speed sped; spell spelt; spend spent; spill spilt; spin spun; spoil spoilt; spring sprang sprung; stand stood;
steal stole stolen; stick stuck; sting stung; stink stank stunk; strike struck stricken; strive strove striven; swear swore sworn;
sweep swept; swell swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought;
throw threw thrown; undergo underwent undergone; understand understood; undertake undertook undertaken; undo undid undone; uphold upheld;
wake woke woken; wear wore worn; weave wove woven; weep wept; win won; withdraw withdrew withdrawn; withhold withheld; write wrote written;
lie lay lain lying; die dying; tie tying;
analysis analyses; axis axes; basis bases; calf calves; child children; crisis crises; criterion criteria; diagnosis diagnoses; foot feet;
goose geese; half halves; hypothesis hypotheses; index indices; knife knives; leaf leaves; life lives; loaf loaves; man men; matrix matrices;
mouse mice; ox oxen; person people; phenomenon phenomena; scarf scarves; self selves; shelf shelves; synthesis syntheses; thief thieves;
tooth teeth; vertex vertices; wife wives; wolf wolves; woman women;
good better best; bad worse worst; far farther further; early earlier earliest; easy easier easiest; busy busier busiest;
happy happier happiest happily; healthy healthier healthiest; heavy heavier heaviest
`)

func forms(text string) map[string]string {
	known := map[string]string{}
	for row := range strings.SplitSeq(text, ";") {
		words := strings.Fields(row)
		for _, form := range words[min(1, len(words)):] {
			known[form] = words[0]
		}
	}
	return known
}
