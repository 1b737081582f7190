"""Phrases and sentences from templates: `(a|b|)` is a choice, `{name}` is drawn from `SLOTS`.

Three registers: what callers and their machines say (`TELEPHONE`), what people say to devices (`COMMANDS`), and
everyday talk (`EVERYDAY`). All written for this recipe; the telephone prompts follow what such systems commonly say.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from . import numbers
from .lexicon import DAYS, DIGITS, MONTHS, NATO, WEEKDAYS

TELEPHONE = """
(please|) (enter|say|key in) your (account|card|phone|telephone|customer|reference|order|policy|agent|pin) number
  (now|please|)
(please|) enter your {n} digit (pin|code|account number|password) (followed by the (pound|hash|star) key|)
(please|) enter your (new|old|) (password|pin|code|date of birth|zip code|postcode)
followed by the (pound|hash|star) (key|sign)
press {digit} (for|to reach) {department}
for {department} (press|say) {digit}
press {digit} to {action}
to {action} press {digit} (now|)
to {action} press {digit} or press {digit} to {action}
press {digit} to {action} or {digit} to {action}
press (star|pound|hash) to {action}
(dial|press) {digit} if you (wish|want|would like) to {action}
(please|) (hold|wait|stay on the line) (while i|while we) (connect|transfer) (you|your call)
please (hold|wait) (a moment|one moment|)
your call (is important to us|will be answered shortly|will be answered in the order it was received|may be
  recorded)
your call is (now|) {ordinal} in (line|the queue)
all of our (agents|representatives|operators) are (currently|) (busy|assisting other callers)
(the next available|an) (agent|representative|operator) will be with you (shortly|soon|in a moment)
(the|this) (number|extension|person|party|user|mailbox) you (are calling|have dialed|are trying to reach) is (not
  available|busy|not in service|unavailable|invalid)
(that|this) is not a valid (number|extension|password|choice|option|pin|code) (please try again|)
(i am|i'm|we are|we're) sorry (that's|that is) not a valid (option|choice|extension)
(invalid|incorrect) (choice|password|extension|number|pin|login|option|entry)
(please|) (leave|record|say) your (message|name|greeting) after the (tone|beep)
at the tone please (say|record) your (name|message)
when you (are|have) (done|finished) (hang up|press pound|press the pound key)
you have {n} (new|old|urgent|saved|) (message|messages)
(first|next|last|previous) message
(message|recording|greeting) (deleted|saved|sent|received|erased|forwarded|marked urgent)
your (message|greeting|recording|name|password|call|order|payment) has been
  (saved|sent|recorded|changed|deleted|received|forwarded|accepted)
your (new|) (password|pin) (is|was|has been) (changed|accepted|too short|not valid|incorrect)
you (are|will be) (now|) (the only|the first) person in (this|the) conference
(the|this) (conference|call|meeting|line) is (now|currently|) (locked|unlocked|muted|unmuted|full|being
  recorded|closed)
you are (now|) (muted|unmuted|connected|on hold|in the conference)
{person} (has|have) (joined|left) the (conference|call|meeting)
there (are|is) (currently|) {n} (other|) (people|person|callers|participants) (in the conference|waiting|on the
  line)
welcome to (the|our) (directory|voicemail system|conference|help line|main menu|mailbox|service)
(please|) (listen|) (carefully|) as our (menu|) options have changed
for (english|more options|more information|help|the directory|the operator|sales|support) press {digit}
to (hear|repeat) (this|the) (message|menu|options) (again|) press {digit}
(please|) (try|call|say that|say it) again (later|)
thank you for (calling|waiting|holding|your call|your patience|your order)
(thank you|thanks) goodbye
(is that|is this) correct
you (said|entered|chose|selected) {number}
(did you say|i heard) {answer}
(what is|what's|can i have|could i get) your (name|number|address|account number|date of birth|phone number|email
  address|order number|postcode|zip code)
may i (have|ask for) your (name|phone number|email|address) please
who is calling (please|)
(how|) (can|may) i help you (today|)
(could|can|would) you (please|) (spell|repeat) (that|your name|your last name|the number) (for me|please|)
my (name|first name|last name|surname) is {name}
(my|the) (number|phone number|account number|pin|code|password|reference number|order number) is {code}
(it's|it is|that's|that is) {code}
(i want|i'd like|i would like|i need) to {callerwish}
(can|could|may) i (please|) {callerwish}
(i'm calling|i am calling) about (my|a) (bill|order|account|refund|payment|delivery|invoice|appointment|card)
(i have|i've got) a (question|problem) (with|about) my (bill|order|account|phone|internet|card|password|delivery)
(i'd like|i want|let me) (to|) (speak|talk) (to|with) (a|an|the|your) (operator|agent|manager|human|real
  person|representative|person)
(operator|agent|representative|human|real person) please
(there's|there is) a (mistake|problem|charge|payment) on my (account|bill|card|order)
my (card|phone|internet|account|email|password|line) (is|was|has been) (lost|stolen|blocked|not
  working|closed|locked|declined)
(i|we) (have|haven't|have not|did not|didn't) (received|get|got|receive) (my|the)
  (order|refund|bill|letter|email|card|payment)
(yes|yeah|yep|no|nope|okay|sure|right|correct) (please|thanks|thank you|that's right|that's fine|go ahead|i do|i
  am|it is|)
(yes|no) (that's|that is|it's|it is) (not|) (right|correct|wrong|fine|okay)
(i do not|i don't) (know|understand|have one|remember|have it|think so|want that)
(i'm|i am) not sure
(one|just a) moment (please|)
(sorry|pardon|excuse me) (what was that|could you say that again|i did not hear you|i don't understand|)
(start over|go back|main menu|repeat that|say that again|help me|hang up|hold on|none of these|something else)
(all|) (of the|) above
(next|last|previous|first|second|third) (one|option|page|item|message)
from (an unknown caller|phone number {code}|{name}|extension {code})
(extension|room|folder|line|option|page|number|gate|flight|platform|track|chapter|channel) {number}
(message|call|email|letter) from {name}
(please|) (call|ring) me back (at|on) {code}
(the|your) (total|balance|price|amount|payment|bill) is {money}
(i|we) (paid|sent|owe|ordered) {money} (on {date}|)
(an appointment|a table|a call|a meeting) (on|for) {date} at {time}
(on|for|until|by|since|before|after) {date}
(at|around|about|by|before|after) {time}
{date} at {time}
(tomorrow|today|tonight|yesterday) (morning|afternoon|evening|night|) (at|) {time}
(how about|what about|is) {day} (at|) {time}
(this|next|last|every) (week|month|year|weekend|{weekday}|morning|evening)
{number} (minutes|seconds|hours|days|weeks|months|years|people|times|percent|degrees)
(in|for|about|after|within) {small} (minutes|seconds|hours|days|weeks|months|years)
{ordinal} (floor|street|avenue|time|class|page|line|place|of {month})
(i was|she was|he was) born (on|in) {date}
(my|his|her) (birthday|date of birth) is {date}
{money} (per|a) (month|year|day|week|person|hour)
{spelling}
(it's spelled|that's|that is spelled|spelled) {spelling}
{letter} as in {nato}
{letter} (for|like) {nato}
{symbol}
{name} at {name} dot (com|net|org)
"""

COMMANDS = """
(please|) (turn|switch) (on|off) the {device} (please|)
(please|) (turn|switch) the {device} (in the {room}|) (on|off)
(turn|put) (it|that|this|the volume|the music|the heating) (up|down|on|off) (a bit|a little|please|)
(turn|set) the (volume|brightness|temperature|heating|thermostat) (up|down|to {small}|to {small} percent|to {small}
  degrees)
(set|start|stop|cancel|pause) (a|the|my) (timer|alarm)
set (a|the) timer for {small} (minutes|seconds|hours)
(set an alarm|wake me up|wake me) (for|at) {time} (tomorrow|on {weekday}|)
remind me to {errand} (at {time}|tomorrow|on {weekday}|in {small} minutes|)
(play|pause|stop|skip|repeat|shuffle) (the|this|that|some|my|) (music|song|album|video|radio|news|list)
play (the next|the previous|the last|another|that) song (again|)
(next|previous|skip|louder|quieter|mute|unmute|stop|pause|resume|play|go back|volume up|volume down)
(call|text|message|email|ring) {person} (please|now|at home|on mobile|)
send (a|an) (message|text|email) to {person}
(read|show|open|check|delete) (my|the) (messages|email|calendar|news|list|photos|map|camera|last message|voicemail)
(add|put) {thing} (to|on) (my|the) (shopping list|list|calendar)
(what's|what is) (the|) (time|date|weather|temperature|traffic|news) (like|) (today|now|tomorrow|in {city}|)
what time is it (in {city}|now|)
what (day|date) is it (today|tomorrow|)
(will|is) it (rain|raining|snow|be cold|be hot|be sunny|warm|cold) (today|tomorrow|outside|on {weekday}|this
  weekend)
(how (far|long)) (is it|does it take) to (get|drive|walk) (home|to work|to {city}|there)
(take me|drive|navigate|show me the way) (home|to work|to the station|to the airport|to {city})
(find|search for|look for|show me) (a|the nearest) (restaurant|station|hotel|shop|bank|hospital|doctor|park) (near
  me|near here|in {city}|)
(open|close|lock|unlock) the (front|back|garage|) (door|window|gate|blinds|curtains)
(is|are) the (door|window|lights|heating|oven|alarm) (open|closed|on|off|locked)
(dim|brighten) the lights (in the {room}|)
(make|set) the {room} (warmer|colder|brighter|darker|{color})
(start|stop) (recording|listening|the car|the engine|the computer|the washing machine)
(yes|no) (do it|please do|cancel that|stop that|never mind)
(cancel|undo|delete|save|send|repeat|confirm) (that|it|this|everything|the last one)
(scroll|page|move|go) (up|down|left|right|back|forward)
(select|choose|click|open|show) (the|) {ordinal} (one|option|item|link|)
(go to|open|show) (the|) (home|next|previous|last|first|main|settings|help) (page|screen|menu)
(what's|what is) {number} (plus|minus|times|divided by) {number}
(how many|how much) (is|are) {number} (pounds|dollars|euros|miles|degrees|percent of {number})
(take|show me) a (photo|picture|video)
(new line|new paragraph|full stop|question mark|comma|delete that|select all|copy that|paste)
"""

EVERYDAY = """
(i|you|we|they) (like|love|want|need|have|see|know|hear|find|take|use|remember) (the|a|this|that|my|your|some|our)
  {adj} {noun}
(he|she|it|my {kin}) (likes|wants|needs|has|sees|takes|knows|finds|makes|brings) (the|a|this|his|her) {adj} {noun}
(i|you|we|they|he|she) (went|came|drove|walked|ran|moved|travelled) (to|from|past|into) the {place}
  (yesterday|today|last {weekday}|in {month}|)
(i|we|he|she|they) (saw|bought|lost|found|made|sold|forgot|opened|broke|cooked|read|wrote) (a|the|some|my|their)
  {noun} (in the {place}|at the {place}|today|)
(where|when|why|how) (did|do|will|can|should) (you|they|we|he|she)
  (go|come|leave|start|stop|work|live|eat|sleep|learn|find) (it|that|there|home|this|)
(what|who|which one) (do|did|would|can) (you|we|they) (want|see|like|need|mean|think|say|choose)
(do|did|can|could|will|would) you (like|see|want|have|need|help|remember|find) (the|my|a|some|this) {noun}
(the|this|that|my|our|your) {adj} {noun} (is|was|looks|seems) (very|not|so|too|really|quite|) {adj}
(the|my|our|some) {noun} (is|was|are) (in|on|under|near|behind|next to) the {place}
there (is|was|are|were) (a|some|no|many|two|three) {adj} {noun} (in|at|near|outside) the {place}
(i think|i believe|i hope|maybe|perhaps|of course|i know) (that|) (he|she|it|this|they|you) (is|are|was|will be|can
  be) {adj}
(it|this|that) (is|was|isn't|wasn't) (a|the|my|your) {adj} {noun}
(please|) (give|bring|show|tell|pass|send) me (the|a|some|your|that) {noun}
(let's|we should|we could|i will|i'll|they will) (go|eat|walk|play|work|meet|start|leave|talk|wait)
  (now|later|soon|together|outside|tomorrow|at the {place})
(good morning|good evening|good night|good afternoon|hello|hi|hey) (everyone|everybody|{person}|sir|madam|)
(how are you|nice to meet you|see you (later|soon|tomorrow)|have a nice (day|evening|weekend|trip)|take care|well
  done|happy birthday|good luck)
(i|we) (don't|do not|can't|cannot|won't|didn't|never) (like|want|know|see|understand|believe|remember|eat|need)
  (it|that|this|him|her|them|the {noun})
(my|his|her|our|their) {kin} (lives|works|is|was|went|stays) (in {city}|at the {place}|at home|here|there)
(because|so|but|and|then|if|when) (i|you|we|he|she|they) (had|was|went|said|knew|wanted|needed|came)
  (to|it|there|home|back|late|early)
the {color} {noun} (and|or|with|without) the {color} {noun}
(every|each|last|next|one|that) (day|night|morning|summer|winter|week|time) (i|we|they|he|she)
  (walk|sing|dance|read|sleep|eat|work|talk|swim|play) (in|at|near) the {place}
(once|twice|many times) (a|in the) (day|week|month|year|morning)
"""

SLOTS: dict[str, Callable[[random.Random], str]] = {
    "digit": lambda rng: rng.choice(DIGITS),
    "n": lambda rng: numbers.cardinal(rng.randrange(1, 21)),
    "small": lambda rng: numbers.cardinal(rng.choice([rng.randrange(1, 13), rng.randrange(1, 100)])),
    "number": numbers.draw_cardinal,
    "ordinal": numbers.draw_ordinal,
    "date": numbers.draw_date,
    "time": numbers.draw_time,
    "money": numbers.draw_money,
    "code": numbers.draw_telephone,
    "spelling": numbers.draw_spelling,
    "letter": numbers.draw_letter,
    "nato": lambda rng: rng.choice(NATO),
    "month": lambda rng: rng.choice(MONTHS),
    "weekday": lambda rng: rng.choice(WEEKDAYS),
    "day": lambda rng: rng.choice((*DAYS, *WEEKDAYS)),
}

WORDS = """
department: sales; support; billing; customer service; technical support; orders; accounts; the operator; the
  directory; reception; english; returns; payments; new customers; more options
action: leave a message; hear your messages; send this message; delete this message; save this message; forward the
  message; repeat this message; hear the next message; hear the previous message; change your password; record your
  name; record your greeting; record a new message; listen to it; accept this recording; call this number; return to
  the main menu; speak to an operator; reach the operator; hear more options; check your balance; pay your bill;
  make a payment; place an order; cancel your order; change your address; continue; exit; quit; go back; try again;
  confirm; start over; hear it again; add another number; mute your line; join the conference; enter the conference;
  connect to the caller; reply to this message; save the changes; erase this greeting
callerwish: pay my bill; check my balance; check my order; cancel my order; change my address; change my password;
  make a payment; make an appointment; cancel my appointment; book a table; book a flight; return an item; get a
  refund; talk to someone; speak to an operator; speak to a manager; speak to customer service; open an account;
  close my account; report a problem; order a new card; leave a message; ask a question; place an order; track my
  order; reset my password; update my details; hear my messages; transfer some money
answer: yes; no; okay; cancel; help; stop; operator; sales; support; repeat
device: light; lights; lamp; fan; heating; radio; music; computer; screen; alarm; camera; bluetooth; wifi|wi_fi;
  thermostat; television; oven; kitchen lights; bedroom lights; bathroom light; garage light; living room lights;
  front door light; air conditioning
room: kitchen; bedroom; bathroom; living room; garage; office; hall; garden
errand: call my mother; buy milk; buy some bread; pay the bill; take my medicine; water the plants; feed the dog;
  call the doctor; go to the bank; send the email; take out the trash; pick up the children; check the oven; book a
  table
person: mom; dad; john; anna; my wife; my husband; my brother; my sister; the office; the doctor; david; sarah;
  michael; peter; mary; emma; james; my boss; the school; susan; tom
name: john smith; anna brown; david jones; mary johnson; peter miller; sarah wilson; michael taylor; emma white;
  james martin; robert green; linda clark; susan hall; thomas king; laura scott; paul adams; karen baker; george
  hill; helen young; smith; miller; johnson; garcia; anderson; harris; robinson; walker
thing: milk; bread; eggs; butter; coffee; tea; sugar; apples; bananas; water; cheese; rice; chicken; tomatoes;
  potatoes; soap; a meeting; a haircut; paper; oranges; juice; flour; salt; fish
city: london; paris; new york; boston; chicago; berlin; tokyo; rome; madrid; sydney; dublin; toronto; dallas;
  seattle
color: red; green; blue; white; black; yellow; brown; orange; purple; grey; pink
adj: good; new; old; big; small; long; short; little; happy; sad; young; nice; great; hot; cold; warm; dark; bright;
  clean; dirty; easy; hard; cheap; fast; slow; strong; weak; quiet; loud; heavy; thin; thick; rich; poor; fresh;
  wet; dry; sharp; soft; sweet; strange; simple; early; late; empty; full; broken; beautiful; important; different;
  special; wonderful; terrible; tired; hungry; careful
noun: house; car; dog; cat; book; table; chair; door; window; tree; bird; fish; horse; boat; train; bus; street;
  river; garden; flower; apple; cake; bread; cheese; water; coffee; tea; milk; glass; cup; plate; knife; bag; box;
  coat; shirt; shoes; hat; ring; watch; phone; letter; picture; paper; pen; song; story; game; ball; film; movie;
  school; church; office; job; idea; problem; question; answer; word; name; friend; child; children; baby; boy;
  girl; man; woman; people; family; doctor; teacher; student; driver; king; money; price; ticket; key; clock; bed;
  kitchen; room; floor; wall; roof; fire; light; sun; moon; star; sky; cloud; rain; snow; wind; storm; sea; island;
  mountain; hill; field; farm; animal; cow; sheep; pig; chicken; egg; meat; fruit; vegetable; soup; dinner; lunch;
  breakfast; party; gift; holiday; trip; map; camera; computer; machine; engine; wheel; tool; stone; metal; wood;
  plastic; sand; gold; silver; cloth; dress; thought; dream; voice; music; noise; sound; smell; taste; heart; hand;
  foot; head; face; eye; ear; nose; mouth; leg; arm; back; hair; tooth
place: house; park; school; office; station; airport; bank; shop; market; hotel; beach; city; village; garden;
  kitchen; street; hospital; library; church; restaurant; museum; theatre; river; forest; lake; farm; bridge;
  corner; road; town; factory; castle; harbour; mountain; field; room
kin: mother; father; sister; brother; son; daughter; uncle; aunt; friend; wife; husband; cousin; teacher; boss;
  neighbour
symbol: open parenthesis; close parenthesis; left brace; right brace; question mark; exclamation mark; dollar sign;
  percent sign; at sign; less than; greater than; forward slash; plus sign; equals sign; double quote; full stop;
  tilde; caret; underscore; backtick; pipe; ampersand
"""


def _lines(text: str) -> list[str]:
    """The entries of a text; a line that begins with a space continues the one before."""
    return re.sub(r"\n +", " ", text.strip()).splitlines()


def _parse_words() -> dict[str, tuple[str, ...]]:
    entries = (line.partition(":") for line in _lines(WORDS))
    return {name: tuple(w.strip() for w in words.split(";")) for name, _, words in entries}


LISTS = _parse_words()

TEMPLATES: dict[str, tuple[str, ...]] = {
    name: tuple(_lines(text))
    for name, text in (("telephone", TELEPHONE), ("command", COMMANDS), ("everyday", EVERYDAY))
}

_CHOICE = re.compile(r"\(([^()]*)\)")
_SLOT = re.compile(r"\{(\w+)\}")


def expand(template: str, rng: random.Random) -> str:
    """One text of a template: inner choices first, then the slots."""
    while match := _CHOICE.search(template):
        chosen = rng.choice(match[1].split("|"))
        template = template[: match.start()] + chosen + template[match.end() :]

    def fill(slot: re.Match[str]) -> str:
        name = slot[1]
        return SLOTS[name](rng) if name in SLOTS else rng.choice(LISTS[name])

    return " ".join(_SLOT.sub(fill, template).split())


def draw_phrase(register: str, rng: random.Random) -> str:
    """A phrase of `telephone`, `command` or `everyday`, every template equally often."""
    return expand(rng.choice(TEMPLATES[register]), rng)
