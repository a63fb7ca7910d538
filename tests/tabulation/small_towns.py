"""Small domains of towns: specs that use every line of the law's table, and what may stand in the files.

In every state a group's members, its row and its duplicates are lines of CSV; `@` is the name of the town.
"""

from itertools import product

from tests.tabulation.many_towns import AREAS, Slot, State, Texts, Towns, lines

TOP = "margrave: 1\nrelease: {name: small, title: Small}\n"
DEFAULTS = "defaults: {outside: leave_out, missing: leave_out}"

# Records that lie in no groups.

ALONE = f"""{TOP}
microdata:
  people:
    key: id
    {DEFAULTS}
    columns:
      part: {{area: towns}}
      x: {{codes: [a, b], not_applicable: N}}
      n: {{integer: -3..4, clip: -1..2}}
      y: {{codes: [p, q], applies_to: {{x: a}}}}
      m: {{codes: [p, q, r], up_to: 2, separator: ;}}
{AREAS}
recodes:
  mm: {{of: m, into: {{PQ: [p, q], R: r}}}}
  m1: {{of: m, into: {{All: [p, q, r]}}}}
universes: {{high: {{of: people, where: {{n: 1..}}}}}}
privacy: {{protect: people, neighbours: add-remove, budget: {{epsilon: 1}}}}
tables:
  every:    {{count: people, at: all}}
  by_x:     {{count: people, by: [x], at: all}}
  by_y:     {{count: people, by: [x, y], at: all}}
  by_m:     {{count: people, by: [m], at: all}}
  by_mm:    {{count: people, by: [mm], at: all}}
  by_m1:    {{count: people, by: [m1], at: all}}
  high_m:   {{count: high, by: [x, m], at: all}}
  sum:      {{sum: n, of: people, at: all}}
  sum_by_x: {{sum: n, of: people, by: [x], at: all}}
  mean:     {{mean: n, of: people, at: all}}
  grid:     {{quantiles: {{n: {{at: 1/2, every: 1}}}}, of: people, at: all}}
  common:   {{most_common: x, of: people, at: all}}
  share:    {{proportion: {{x: a}}, of: high, at: all}}
"""


def alone() -> Towns:
    """One record that may say anything, beside one that may say little, one without id, a bad line and duplicates."""
    said = [",".join(cells) for cells in product(("@A", "@B", ""), "abN?", ("-3", "4", "9"), "pz", ("p;q", ""))]
    said += [",".join(cells) for cells in product(("@A",), "ab", ("-3", "4", ""), "p", ("p", "q;r", "z;p", "p;p"))]
    chain = ("@A,a,4,p,p;q", "@A,b,-3,q,r", "@B,a,,p,p")
    twice = [lines("people", *(f"@1,{one}" for one in pair)) for pair in (chain[:2], chain[1:], chain)]
    any_state = [lines("people", f"@1,{one}") for one in said]
    little = [lines("people", f"@2,{one}") for one in chain[:2]]
    others = [lines("people", ",@A,b,4,q,q;r"), lines("people", "@A,b,4"), lines("people", "@9,@A,b,4,q,r,r")]
    slots = tuple(Slot(((), *states)) for states in ([*any_state, *twice], little, others))
    return Towns(ALONE, {"people": "id,part,x,n,y,m"}, slots, (tuple(contents(one) for one in chain),))


def contents(line: str) -> Texts:
    """What is hashed of a line: every declared column as it stands."""
    return tuple(cell or None for cell in line.split(","))


# Records that are protected one by one and lie in groups.

SHARED = f"""{TOP}
microdata:
  homes:
    key: home
    {DEFAULTS}
    columns: {{part: {{area: towns}}, kind: {{codes: [H, F]}}}}
  people:
    key: [home, line]
    in: {{homes: home}}
    {DEFAULTS}
    columns: {{part: {{area: towns}}, x: {{codes: [a, b]}}}}
{AREAS}
derive: {{homes: {{size: {{number_of: people, into: {{Few: ..1, Even: 2, Odd: 3..}}}}}}}}
universes:
  in_two:  {{of: people, where: {{size: Even}}}}
  of_two:  {{of: homes, where: {{size: Even}}}}
privacy: {{protect: people, AT_MOST, neighbours: add-remove, budget: {{epsilon: 1}}}}
tables:
  every:         {{count: people, at: all}}
  by_x:          {{count: people, by: [x], at: all}}
  by_kind:       {{count: people, by: [kind], at: all}}
  by_size:       {{count: people, by: [size], at: all}}
  in_two:        {{count: in_two, at: all}}
  share:         {{proportion: {{kind: H}}, of: people, at: all}}
  homes:         {{count: homes, at: all}}
  homes_by_kind: {{count: homes, by: [kind], at: all}}
  homes_by_size: {{count: homes, by: [size], at: all}}
  homes_of_two:  {{count: of_two, by: [kind], at: all}}
"""


def member(group: str, number: str, said: str) -> State:
    return lines("people", f"@{group},{number},@A,{said}")


def shared(at_most: str, *, nameless: bool = False, places_in_k: int = 2) -> Towns:
    """Two homes with places for three records and for some; a home's row comes with any of its records."""
    rows = [Slot(((), *(lines("homes", f"@{g},@A,{kind}") for kind in "HF")), is_unit=False) for g in "hk"]
    ids = {"h": ["1", "2", "" if nameless else "3"], "k": ["1", "2", "3"][:places_in_k]}
    units = [
        Slot(((), member(g, number, "a"), member(g, number, "b")), beside=place)
        for place, g in enumerate("hk")
        for number in ids[g]
    ]
    if nameless:
        twice = lines("people", "@h,1,@A,a", "@h,1.0,@A,b")
        units[0] = Slot((*units[0].states, twice), beside=0)
    of_h: tuple[Texts, ...] = (("@h", "1"), ("@A", "a"), ("@h", "2"), ("@A", "b"))
    if not nameless:
        of_h = (("@h", "1"), ("@h", "2"), ("@h", "3"))
    headers = {"homes": "home,part,kind", "people": "home,line,part,x"}
    spec = SHARED.replace("AT_MOST", at_most)
    return Towns(spec, headers, (*rows, *units), (of_h, tuple(("@k", number) for number in ids["k"])))


# Groups that are protected as a whole.

HOMES = f"""{TOP}
microdata:
  homes:
    key: home
    {DEFAULTS}
    columns:
      part:  {{area: towns}}
      kind:  {{codes: [H, F]}}
      rooms: {{integer: -3..4, clip: -1..2}}
      rent:  {{codes: [low, high], applies_to: {{size: Two}}}}
  people:
    key: [home, line]
    in: {{homes: home}}
    {DEFAULTS}
    columns:
      s: {{codes: [no, yes]}}
      part: {{area: towns}}
      x: {{codes: [a, b]}}
      n: {{integer: -3..4, clip: -1..2}}
      m: {{codes: [p, q, r], up_to: 2, separator: ;}}
{AREAS}
derive:
  homes:
    size:  {{number_of: people, into: {{None: 0, One: 1, Two: 2, More: 3..}}}}
    any_b: {{any: people, where: {{x: b}}}}
    the_b: {{value_of: n, where: {{x: b}}}}
universes: {{high: {{of: people, where: {{n: 1..}}}}, twos: {{of: homes, where: {{size: Two}}}}}}
privacy: {{protect: homes, AT_MOST, neighbours: add-remove, budget: {{epsilon: 1}}}}
tables:
  every:         {{count: people, at: all}}
  by_x:          {{count: people, by: [x], at: all}}
  by_m:          {{count: people, by: [m], at: all}}
  one_of_each:   {{count: people, by: [x], at: all, at_most: 1}}
  high:          {{count: high, at: all}}
  sum:           {{sum: n, of: people, at: all}}
  sum_by_x:      {{sum: n, of: people, by: [x], at: all}}
  mean:          {{mean: n, of: people, at: all}}
  share:         {{proportion: {{x: a}}, of: people, at: all}}
  homes:         {{count: homes, by: [kind], at: all}}
  homes_by_size: {{count: homes, by: [size, any_b], at: all}}
  homes_by_b:    {{count: homes, by: [the_b], at: all}}
  rents_of_twos: {{count: twos, by: [rent], at: all}}
  rooms:         {{sum: rooms, of: homes, at: all}}
  mean_rooms:    {{mean: rooms, of: homes, by: [kind], at: all}}
"""
BY_GROUP = """  by_size:       {count: people, by: [size], at: all}
  by_kind:       {count: people, by: [kind, x], at: all}
"""
SAID = {"a": "no,@A,a,4,p;q", "b": "no,@B,b,-3,r", "c": "no,@A,?,,"}
ROWS = {"H": "@A,H,4,low", "F": "@B,F,-3,high"}
HEADERS = {"homes": "home,part,kind,rooms,rent", "people": "home,line,s,part,x,n,m"}
ONE_OF_EACH_ID = ((("@k", "1"), ("@k", "2")), (("@h", "1"), ("@h", "2"), ("@h", "3")))


def home(group: str, rows: str, *members: tuple[str, str]) -> State:
    """A home with these rows in its file and these members."""
    written = lines("homes", *(f"@{group},{ROWS[row]}" for row in rows))
    return (*written, *lines("people", *(f"@{group},{number},{SAID[said]}" for number, said in members)))


def homes_of(group: str, rows: tuple[str, ...], places: int) -> list[State]:
    """A home with each of these rows and every choice of members, none first."""
    return [
        home(group, row, *((str(number), said) for number, said in enumerate(chosen, 1) if said != "."))
        for row in rows
        for chosen in product(".ab", repeat=places)
    ]


def homes(at_most: str, *, larger: bool = False) -> Towns:
    """A home of up to three, another, and a record without a home; rows of homes are missing, there, or there twice."""
    of_h = homes_of("h", ("", "H", "HF"), 3)
    of_h += [home("h", "F", ("1", "a"), (" 1.0", "b"), ("2", one), ("3", "c")) for one in "abc"]
    of_k = [(), home("k", "F", ("1", "a"), ("2", "b")), home("k", "", ("1", "b"), ("2", "b"), ("2", "a"))]
    of_k = homes_of("k", ("", "F"), 2) if larger else of_k
    without = [(), *(lines("people", f",1,{SAID[said]}") for said in "ab")]
    slots = tuple(Slot(tuple(states)) for states in (of_h, of_k, without))
    return Towns((HOMES + BY_GROUP).replace("AT_MOST", at_most), HEADERS, slots, (*said_in_order(), *ONE_OF_EACH_ID))


def said_in_order() -> tuple[tuple[Texts, ...], ...]:
    """Contents of duplicates are hashed in this order in every town."""
    return tuple(contents(SAID[said]) for said in "ab"), tuple(contents(ROWS[row]) for row in "HF")


def homes_with_singles(at_most: str) -> Towns:
    """Singles that carry the group and the id of a member; they are units of their own, and so are their duplicates."""
    of_h = homes_of("h", ("", "H"), 3)
    of_k = [(), home("k", "F", ("1", "a"), ("2", "b"))]
    alone_in_h = {said: "@h,1," + SAID[said].replace("no", "yes") for said in "ab"}
    singles = [(), *(lines("people", line) for line in alone_in_h.values()), lines("people", *alone_in_h.values())]
    others = [(), *(lines("people", f"@k,7,{SAID[said].replace('no', 'yes')}") for said in "ab")]
    slots = tuple(Slot(tuple(states)) for states in (of_h, of_k, singles, others))
    order = (*said_in_order(), tuple(contents(SAID[said].replace("no", "yes")) for said in "ab"), *ONE_OF_EACH_ID)
    spec = HOMES.replace("AT_MOST", f"{at_most}, singles: {{s: yes}}")
    return Towns(spec, HEADERS, slots, order)


def homes_without_ids(at_most: str) -> Towns:
    """Members without an id are told apart by what they say; a line of the file that cannot be read is a unit."""
    nameless = [(), *({"a", "b"}), *(("a", "a"), ("a", "b"), ("b", "b")), ("a", "a", "b"), ("a", "b", "b")]
    of_h = [
        home("h", "H", *(("", said) for said in chosen), *named)
        for chosen in nameless
        for named in ((), (("1", "a"),), (("1", "b"), ("2", "a")), (("2", "b"), ("2", "a")))
    ]
    of_k = [(), *(home("k", "F", ("", one), ("", "b"), ("", "b")) for one in "ab")]
    without = [(), lines("people", f",,{SAID['a']}"), lines("people", "@h,1"), lines("homes", ",@A,F,1,low")]
    slots = tuple(Slot(tuple(states)) for states in ([(), *of_h], of_k, without))
    mixed = (("@h", "1"), contents(SAID["a"]), ("@h", "2"), contents(SAID["b"]))
    return Towns((HOMES + BY_GROUP).replace("AT_MOST", at_most), HEADERS, slots, (mixed,))


# Groups that are built from rows.

MOTHERS = f"""{TOP}
microdata:
  mothers:
    key: mother
    from: births
    {DEFAULTS}
    columns:
      part: {{area: towns, mixed: leave_out}}
      age:  {{integer: 1..4, clip: 1..4, mixed: {{count_as: 1}}}}
  births:
    key: birth
    in: {{mothers: mother}}
    {DEFAULTS}
    columns: {{part: {{area: towns}}, sex: {{codes: [b, g]}}}}
{AREAS}
derive: {{mothers: {{born: {{number_of: births, into: {{One: ..1, Two: 2, More: 3..}}}}}}}}
privacy: {{protect: PROTECTED, at_most: {{births: CAP}}, neighbours: add-remove, budget: {{epsilon: 1}}}}
tables:
  mothers:         {{count: mothers, at: all}}
  mothers_by_age:  {{count: mothers, by: [age], at: all}}
  mothers_by_born: {{count: mothers, by: [born], at: all}}
  births:          {{count: births, by: [sex], at: all}}
  births_by_age:   {{count: births, by: [age, sex], at: all}}
  births_by_born:  {{count: births, by: [born], at: all}}
"""
SUMS_OF_MOTHERS = """  ages:            {sum: age, of: mothers, at: all}
  mean_age:        {mean: age, of: mothers, by: [born], at: all}
"""
BORN = ("@A,4,b", "@B,1,g", "@A,?,b")


def birth(mother: str, number: int, said: int) -> str:
    return f"@{mother}{number},@{mother},{BORN[said - 1]}"


def births_of(mother: str, places: int, kinds: int) -> list[State]:
    """Every choice of births for one mother, none first."""
    chosen = product(range(kinds + 1), repeat=places)
    return [lines("births", *(birth(mother, number, one) for number, one in enumerate(ones) if one)) for ones in chosen]


def mothers(cap: int) -> Towns:
    """Two mothers, one with duplicates of a birth, and a birth without a mother."""
    twice = lines("births", birth("h", 0, 1), birth("h", 0, 2), birth("h", 1, 1), birth("h", 2, 1))
    of_h = [*births_of("h", 3, 3), twice]
    without = [(), *(lines("births", f"@9,,{one}") for one in BORN[:2])]
    slots = tuple(Slot(tuple(states)) for states in (of_h, births_of("k", 2, 2), without))
    spec = MOTHERS.replace("PROTECTED", "mothers").replace("CAP", str(cap)) + SUMS_OF_MOTHERS
    return Towns(spec, {"births": "birth,mother,part,age,sex"}, slots, births_in_order())


def births(cap: int) -> Towns:
    """Births that are protected one by one, of two mothers who are known from their births alone."""
    kinds = {("h", 0): (1, 2, 3), ("h", 1): (1, 2, 3), ("h", 2): (1, 2), ("k", 0): (1, 2), ("k", 1): (1, 2)}
    slots = [
        Slot(((), *(lines("births", birth(*place, said)) for said in said_here))) for place, said_here in kinds.items()
    ]
    slots += [Slot(((), lines("births", f"@9,,{BORN[0]}")))]
    spec = MOTHERS.replace("PROTECTED", "births").replace("CAP", str(cap))
    return Towns(spec, {"births": "birth,mother,part,age,sex"}, tuple(slots), births_in_order())


def births_in_order() -> tuple[tuple[Texts, ...], ...]:
    """Contents are hashed with the columns of births first, then those of mothers, each column once."""
    ids = tuple(tuple((f"@{mother}", f"@{mother}{number}") for number in range(3)) for mother in "hk")
    return (*ids, (("@A", "b", "4"), ("@B", "g", "1")))
