/** Common words that, with a space before them, are one token each in the Qwen 3 and Llama 3 vocabularies. */
export const WORDS: readonly string[] = `
apple answer animal art army air age action actor address advice agent amount anger area arm attack author
baby back bag ball band bank base basket beach bear beauty bed bell bird birth blood blue board boat body bone book border
bottle bottom box boy brain branch bread bridge brother brown budget building bus business button
cable cake call camera camp capital captain car card care case castle cat cause center chain chair chance change charge
cheese chest chicken child choice church circle city class clock cloud club coach coal coast coat code coffee cold color
column comfort company concert contract control cook copper copy corner cost cotton country couple course court cover
cream credit crew crime crop cross crowd culture cup current curve cycle
danger data date daughter day deal death debate debt decision deep degree demand desert design desk detail device dinner
direction discussion disease dish distance doctor dog door doubt dream dress drink driver drop dry duty
ear earth east edge education effect egg energy engine entry error evening event example exchange expert eye
face fact factory family farm farmer father feeling field figure file film finger fire fish floor flower food foot force
forest form frame friend front fruit future game garden gas gate gift girl glass goal gold grass green ground group
growth guide gun habit hair half hall hand hat head health heart heat height hill history hole holiday home honey hope
horse hospital hotel hour house ice idea image income industry insect inside iron island issue item job journey judge
juice key kitchen knee knife lake land language law leader leaf lesson letter level library light line lip list lock
machine map market material meal meaning measure meat member memory metal method middle milk mind minute mirror moment
money month moon morning mother motor mountain mouth movie music name nation nature neck needle network night noise north
note number object ocean office oil opinion orange order owner page pain paint pair paper parent park part party path
peace pencil people person phone picture piece place plan plane plant plate player pocket poem point police pool power
price prison prize problem product profit question race radio rain reason record relation report rest result rice right
ring river road rock roof room root rule
`
  .trim()
  .split(/\s+/);
