"""The commonest words of English, for speech outside the domain.

Out-of-scope speech must not come out as domain words spoken with confidence, so part of the training speech is made of
words from the whole language, written with small pieces.

The list is the top of the English one of wordfreq 3.1 (Robyn Speer, 2022; data CC-BY-SA-4.0), most frequent first, less
abbreviations and what nobody wants in a demo.
"""

from __future__ import annotations

_WORDS = """
the and for that you with this was are have not but from your all his they one can will just like about out what has
when more were who had their there her which time get been would she new people how don't some also them now other
i'm its our than good only after first him into know see two make over think any then could back these want because
well said way most much very where even should may here need really did right work year years being day too going
before off why made still take got many never those life say world down great through you're last that's while best
such love man home long look something use can't same used both every come part state three around between always
better find help high little old since another does own things under during game i've thing give house place school
again next each without against didn't end found must show big feel sure team ever family keep might please put
money free second someone away left number city days lot name night play until company doing few he's let real
called different having set thought done however getting god government group looking public top women business care
start system times week already anything case nothing person today change enough everything full live making point
read there's told yet bad doesn't four hard mean once support tell including music power seen states stop water
based believe call head men national small took white came far job side though try went yes actually american later
less line order party run says service country open season thank children everyone general they're trying united
using area black following law makes together war whole car face five kind maybe per president story working course
games health hope important least means news within able book early friends i'll information local post thanks video
young ago others social talk court fact given guys half hand isn't level mind often single become body coming
control death food guy hours office pay problem south true we're almost history known large lost research room
several started taking university win wrong along anyone else girl john matter pretty remember air bit friend hit
needs nice playing probably saying understand yeah york class close comes i'd idea international looks past possible
wanted cause due happy human members months move question series wait woman ask community data late leave north saw
special watch won't either future light low million morning police short stay taken age buy deal rather reason red
report soon third turn whether among check development form further heart minutes myself services yourself act
although asked child fire fun living major media phone players art behind building easy gonna market near non plan
political quite six talking west works according available education final former front kids list ready sometimes
son street wasn't bring college current example experience heard london meet program type baby chance father march
process she's song study word across action clear gave gets himself month outside self students words board cost cut
field held instead main moment mother road seems thinking town wants department energy fight fine force hear issue
played points price rest results running shows space summer term wife america beautiful date goes land miss project
shot site strong you'll account especially eyes include june parents period position record similar total above club
common died film happened knew lead likely military perfect personal security share what's won april center county
couple dead english happen hold industry inside issues online player private problems return rights sense star test
view weeks break british companies event higher hour member middle needed present result sorry takes training wish
wouldn't answer boy design finally girls gold gone guess interest july king learn policy society added alone average
bank brought certain church east hands hot let's longer medical movie original park performance press received role
sent themselves tried worked worth areas became bill books cool director exactly giving ground meeting provide
questions relationship september sound source usually value evidence follow lives official production rate reading
round save stand stuff tax whatever amount blue countries david drive eat fall fast federal feeling felt green
league management match model picture size step trust you've central changes england forward groups hey key mom page
paid range review science trade upon various attention brother cannot character chief cup football hate haven't
james led looked lower natural october property quality send style vote amazing august blood china complete dog
economic involved itself language lord november oil related serious stage terms title add article attack born
couldn't decided decision enjoy entire french january met perhaps poor release situation technology turned website
written choice code considered continue council cover currently door election european events financial foreign hair
increase legal lose michael pick race seem seven sign simple simply staff super union walk washington bed began
built career changed crazy daily daughter december die difficult figure hospital knows loss modern ones paper parts
popular published safe starting systems version voice whose writing army australia earth forget goal huge internet
listen okay practice rules sea sir success towards waiting ways access aren't base below created deep followed mark
missing offer pass professional released risk schools sleep table ten truth ball box build card cases dark district
europe george india mine minister note percent piece products recent seeing straight visit wall wanna we've wrote
allowed boys culture fans february gives growth included married officer pain paul places respect response river
rock shall speak specific standard tonight write album century charge cold create effect eight except eye funny
limited moving network peace provided recently required sales spent store student tomorrow track via watching weight
addition ahead allow anti association beat brown capital chinese committee conference difference double expect gas
island moved normal plans population potential pressure radio russian station text treatment western beginning
california campaign certainly completely content credit cross described despite female focus husband ice individual
interesting join kept leading loved message miles nearly particular previous quickly region reported section sort
speed travel consider contact drop fair feet jesus kid link positive sale throughout tour welcome absolutely
additional beyond conditions earlier extra forces immediately jobs leaving minute nature numbers quick sell
significant studies unless winning agree canada clean computer construction episode favorite income justice levels
manager movement photo posted safety san scene sold sounds spend statement teams ability announced asking calling
coach collection continued costs definitely designed expected friday gun happens heavy includes knowledge
particularly search subject train wide wow author centre claim dad developed fear fit generally german global goals
gotta hotel interested judge lady leader letter lines material named nobody opportunity plus pre product regular
secretary sister stories unit workers annual anymore bar battle brain contract degree families features finished
floor france growing hurt image insurance majority meant opening opinion physical pro reach rule seriously sports
stupid successful active administration approach australian biggest cancer civil dance defense direction independent
master none reasons russia ship stock trump weekend wonder worst africa awesome band beach cash clearly commercial
compared effort ended fan fighting imagine impact lack latest learning multiple older operation organization passed
pictures protect secret senior spring sunday telling wear activities address analysis anyway bought calls choose
christmas color commission competition details direct dream easily finish grand here's increased indian literally
luck marriage names necessary patients resources rich skin speaking supposed sweet thus touch yesterday caught
closed congress damage directly disease doctor doubt drink driving established facebook feels fish germany glad
greater grow largest machine notice overall planning professor programs records reports shown sit trip associated
basic captain carry cars crime effective effects explain fully highly holding japan laws male parties plant reality
smith spot texas we'll winter worse advice agreement ain't award block broken caused challenge characters christian
comment equipment eventually helped holy lived lots nation otherwise peter prices primary purpose rates responsible
shop showing sick teacher theory uses william agency avoid camera catch cell coast comments drug economy environment
executive foot hall mass meaning mission nine officers operations politics pop produced ran saturday status
therefore trial truly weather activity application claims coffee complex condition division evening flight freedom
google heat highest interview library located location obama offered putting queen seconds showed sitting standing
stars walking accept actual appear attempt broke channel distance eating exchange fat fell finding glass learned
losing mobile northern opened placed powerful prior protection reached receive religious ride robert royal screen
serve signed slow species speech traffic tree types wearing who's whom wonderful agreed airport animals appears
begin benefits bottom cities demand engine everybody famous ideas investment keeping lie notes partner plays raised
runs sad solution songs sources southern square stopped structure thomas traditional twice wind worry americans
appeared becomes brand bus cent chicago count covered critical digital forced fourth fresh lake mental mentioned
missed mostly mouth owner photos previously realize remain scale score separate smart starts surface throw tom
totally twitter views wedding you'd acting actions african arms benefit budget click estate failed faith fashion
feature fund generation hearing hill jack larger louis metal mid paris profile pull push returned rose seat seemed
shouldn't target understanding village agent animal apply authority basis becoming chris draw dude employees enter
follows foundation gain individuals japanese leaders memory prime projects ring rise selling served silver soul
spread supply waste weird adult apparently artist chairman edition engineering grade happening healthy institute
method mike monday nations obviously option prison provides remains senate smaller somebody stone strength users
wild window winner arrived bag bet camp cast christ continues correct dangerous extremely firm greatest handle
improve indeed leaves movies negative prevent removed richard spirit television till trouble videos advantage apart
aware cat customers decide dinner dollars eastern fifth function gift helping herself impossible influence items joe
los marketing mary materials nor produce progress proud require shooting shut standards tells thinks van wood
background birth bridge carried charles classes completed concept copy dear dogs drugs efforts garden host housing
israel journal labor leadership length lucky neither onto patient possibly prove rare setting skills software
thousands tough units alive apple balance birthday boss cards changing connection dress easier fellow florida horse
knowing liked magic managed map owned request stick they've turns vehicle volume wake aid beauty believed billion
busy buying cells concerned conversation corner criminal cultural develop driver ends existing farm file fix fly
frank guide images investigation mexico operating paying presented raise responsibility roll slightly suggest
surprise technical thoughts treat unique variety violence weapons yours youth appreciate bigger breaking discovered
dont dry edge evil excited forever funds helps henry injury iron lovely mad magazine martin models offers ordered
parliament prepared reference religion sites somewhere stated strategy teachers web wine accounts angeles arm
audience bay blog closer core democratic description dropped excellent exist figures forms guard honest issued
joined jones lee lies likes medicine mention mountain nuclear orders port presence reaction reduce shoot sides solid
spanish sport steps stress taste tea victory afternoon assistant britain citizens classic clothes decisions electric
emergency entered entirely facts failure festival flat fuel harry hello houses ill initial introduced johnson kick
links mail massive matters pair picked pieces plane plenty prince proper providing quarter regional scott session
shape sky teaching toward transfer upper useful valley watched willing windows zone accident advanced alternative
anywhere articles awards bear boat bringing capacity cheap climate communities discussion drinking duty fantastic
feelings flying governor hasn't hundred industrial joint mix museum options path plants policies promise proposed
purchase rain remove signs spending steel steve supporting terrible they'll tired treated turning vice warm afraid
arts beer border canadian command crew crowd dating elements enemy ensure environmental filled fixed forest
intelligence intended labour limit moon ocean powers profit proof republican soldiers suit wins women's appearance
asian attorney banks behavior ben bodies brothers buildings chair creating debt domestic expensive grew historical
homes honestly honor jump launch listed minimum native noted originally planned ray sets suddenly supreme survey
tech trees update user writer yellow younger ancient attacks charges combined communication connected contains
download email ending exercise express flow formed girlfriend hero illegal increasing joke loan methods officials
people's performed planet relationships restaurant scotland selected shared shopping soft stuck sugar suggested
supported surprised taught transport weren't accepted adding affairs allows appeal applied appropriate artists
boston confirmed device drama entry era factor feed golden grant grown heads hoping keeps lawyer legs lying measures
mistake muslim organizations platform pool pulled regarding relations requires route saved schedule scientific shoes
smoke squad teach testing tests values walked williams abuse angry businesses candidate comfortable concern
developing discuss elections emotional everywhere facilities falling fox guns hole holiday interests internal
ireland italian italy jersey laugh leg letters liberal listening loves lunch max milk pack payment perform recorded
relatively sector sharing snow storm streets strike studio sub weak youtube actor advance apartment asia chain
chapter committed confidence cook cute equal fake finance focused hits identity journey kitchen korea leads maintain
measure numerous owners posts properties quiet revealed specifically split task taxes taylor twenty urban acts
affected aircraft applications approved approximately argument arrested claimed conflict considering corporate
debate determined distribution documents escape extended factors faster fault fill films flowers friendly ladies lay
lights millions mixed phase properly pure reduced requirements residents revenue sam secure smile strange talent
temperature thousand tony troops truck votes authorities basically besides bird blame bob bowl causes chicken
collected context coverage determine display dying elected examples experienced falls false fired forgot funding
identified incredible inspired launched meat ministry mode neck noticed novel obvious passing positions remaining
scored shirt shots slowly stadium stores surgery trading tuesday vision whenever worried zero alex allowing begins
champion charged cream crisis daniel delivered editor estimated giant iran jail jim kingdom literature mayor minor
moments opposite orange ourselves pages remained selection serving signal stream struggle suicide talked theme
thursday tiny typically unfortunately usual vehicles virginia voted voting walls wave alcohol assembly breakfast
bright brings capable carrying chosen combination conservative customer cutting desire destroyed draft drunk
essential fail familiar finds granted guilty humans hundreds improved jewish largely laughing markets medium ohio
opportunities papers perfectly recommend referred relevant seek sending solo spoke stands talks ticket unable upset
wing world's answers birds bomb creative cycle dealing directed educational entertainment extreme facility fields
goods hang holds info mainly maximum newspaper offering painting republic reserve returns row salt scared scottish
shares statistics switch territory threat tickets wales adults affect appointed armed aside assistance bell blow
bond boyfriend careful circumstances communications concerns controlled corporation cry danger deals delivery
deserve devices dollar dreams empty enjoyed explained faces folks gender instance kim kinda matches mile motion
moves nick pacific prize realized reasonable receiving register resolution rural ryan saving sees singing spain
tools typical universe warning wars wednesday admit attitude branch brazil conducted decades dedicated definition
drawing favor flag frame guest heaven independence institutions it'll jackson kiss load plot possibility random
recovery rent replace represent reviews scenes seeking senator sentence teeth tips trained understood academic
academy accurate achieve adam afford andrew assume bottle bunch category chat cheese chemical clinton competitive
detail diet favourite fruit harder he'd index item lane mess navy normally occurred opposition parent permanent
personally pleasure prefer programme representative scheme shift stood storage tank tend tight transportation
ultimately unlike weekly yard anybody assets basketball button candidates combat constitution consumer counter
creation crown crying defined depending depression describe drivers employment exclusive excuse expert frequently
golf grace hopefully identify importance kevin laid latter manufacturing mining object partners pattern performing
personnel perspective pregnant premier promote revolution rooms severe sleeping suppose tool tournament turkey
victim victims agents amazon arrest attend ban brilliant carbon catholic chose circle concert crash declared deliver
depth deputy dirty doctors earned electronic error existence experiences expression factory headed interior joy
legislation maintenance manner mate matt nearby noise origin pakistan panel personality plate practices prepare
relief replaced resistance retail rice roads roof shame ships somewhat staying stronger surely tip updated writers
absolute advertising agencies baseball bathroom bible cable calm championship checked client constant dates degrees
democrats doors driven dumb empire exciting expansion he'll heavily hide incident irish linked manage messages
michigan multi politicians print quit refused reporting sight significantly sing soviet weapon wet widely worldwide
ages anniversary attractive bike broad burn cake causing closely constantly contest deaths depends drawn fees
francisco haha hardly hat height hidden hong invited letting loud manchester marine motor officially peak portion
pounds princess protein puts raw reform regions represented respond retirement sample seats secondary solar somehow
stayed suffering sydney today's tries ultimate unknown wilson wondering attached attacked automatically balls
battery bills blind breath brief carolina chest conduct debut decade destroy differences edward engaged experts
expressed external fantasy grab hollywood immediate introduction joseph license paint pilot pink presidential
principal recognize recognized registered regularly representatives rising seasons shipping singer smoking steam
suffered survive tall thats theatre therapy witness adopted aim campus cap chances childhood clinical clubs comedy
commander comparison covers dan defeat defence democracy detailed entitled exact exposed fed fee injured jordan
kinds lets loans lock musical nose objects opposed organized plastic protected purposes quote recording semi
statements suspect swear techniques tie tim trend valuable wealth wise yards aged approval aspects attempts bread
burning champions contain convention dancing document eggs employee engineer equivalent facing fairly fingers ford
founded functions gang graduate greek hanging inner islands lift marked memories miller monthly mountains
neighborhood operate outstanding permission racing recommended regulations reply republicans rid roman scientists
shoulder shower solutions sons stations stephen tower tradition visited visual wheel zealand achieved admitted
appointment authors barely bush cabinet celebrate challenges chocolate coal colour contemporary criticism davis dna
effectively eric extensive faced filed formation fought gained gallery highway historic hunt improvement inch
initially junior jury kong korean marks monster obtained olympic philosophy pride promised repeat returning riding
rough santa settlement smell sought speaker studied suggests surrounding tone topic toronto universal vast visitors
wanting auto consistent continuing earn exists finger grey guitar heading howard ignore involving latin lewis meal
meanwhile meetings naturally necessarily offices pants partnership payments percentage pocket practical primarily
proved regardless relative represents rescue resulting rush sarah sessions sharp simon soccer stable structures
supplies symptoms temporary tested
"""

COMMON_WORDS: tuple[str, ...] = tuple(_WORDS.split())
