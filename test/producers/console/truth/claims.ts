// What counts as "says well" on a page of the console or in what its stream has told: each claim is a form of the markup. A page's
// table (views.ts) says which of them it makes, and which of them end with what.

const STATE = (word: string) => new RegExp(`data-state="${word}"|</span>${word}</span>`)
const TONE = (id: string) => new RegExp(`id="(?:${id})"[^>]*data-tone="well"`)
/** The figure of an element, and not the question mark that stands for what isn't known. */
const FIGURE = (id: string) => new RegExp(`id="(?:${id})"[^>]*>(?!\\?|unknown)[^<]`)
const HOST = (role: string, state: string) =>
  new RegExp(`>(?:${role})</td>(?:<td[^>]*>[^<]*</td>)<td[^>]*><span[^>]*><span[^>]*>[^<]*</span>${state}<`)

export const CLAIMS = {
  Well: /id="sentence-text"[^>]*>Well</,
  'tone of the sentence': TONE('sentence'),
  'tone of rows per second': TONE('rows-value'),
  'tone of figures of queues': TONE('wait-value|failed-value'),
  'tone of the outbox': TONE('outbox-value'),
  'tone of kinds': TONE('kind-[a-z-]+'),
  'tone of hosts of workers': TONE('host-[^"]*_(?:bulk|interactive)'),
  'tone of hosts of the scheduler': TONE('host-[^"]*_scheduler'),
  'tone of hosts of consoles': TONE('host-[^"]*_console'),
  'tone of open batches': TONE('open-value'),
  'tone of stalled batches': TONE('stalled-value'),
  'depths of queues': FIGURE('kind-[a-z-]+-(?:waiting|active|oldest)'),
  'work of a minute': FIGURE('kind-[a-z-]+-done'),
  'wait of a minute': FIGURE('kind-[a-z-]+-p95'),
  'processes heard': /[1-9]\d* processes on 1 host heard</,
  RUNNING: STATE('RUNNING'),
  'rate of a batch': /[1-9]\d* rows\/s over the last minute|id="batch-\d+-rate"[^>]*>[1-9]/,
  'end of a batch': />about \d+ (?:s|min|h|d)\b/,
  FINISHED: STATE('FINISHED'),
  'ON TIME': STATE('ON TIME'),
  SUCCEEDED: STATE('SUCCEEDED'),
  QUEUED: STATE('QUEUED'),
  'a worker makes the report': /A worker is making it/,
  'a scheduler sends the run': /A scheduler sends it/,
  'no failed job': /There is none that is yours to see: nothing needs you/,
  'no failed job like this': /No failed job that is yours to see is like this/,
  'IN WORK': /<\/span>IN WORK</,
  'a worker has the job': /A worker has the job now|A worker has it/,
  DONE: /<\/span>DONE</,
  'nothing has to be done': /Nothing has to be done|Nothing: the job is decided|Nothing now/,
  'answer delivered': /<\/span>Answer delivered</,
  'nothing here needs you': /Nothing here needs you/,
  'ALIVE, of workers': HOST('bulk|interactive', 'ALIVE'),
  'ALIVE, of the scheduler': HOST('scheduler', 'ALIVE'),
  'ALIVE, of the console': HOST('console', 'ALIVE'),
  'a network is called': /<\/span>called</,
  'processes have the key': /[1-9]\d* of \d+ processes heard in the last 30 s have it/,
} as const satisfies Record<string, RegExp>

export type Claim = keyof typeof CLAIMS

/** The claims that this markup makes. Throws where a tone says well in a way that no claim names. */
export function claimsIn(text: string): Claim[] {
  const found = (Object.keys(CLAIMS) as Claim[]).filter(claim => CLAIMS[claim].test(text))
  const tones = Object.entries(CLAIMS).filter(([claim]) => claim.startsWith('tone'))
  const rest = tones.reduce((left, [, form]) => left.replaceAll(new RegExp(form, 'g'), ''), text)
  const unnamed = /<[^<]*data-tone="well"/.exec(rest)
  if (unnamed) throw new Error(`a tone says well, and no claim names it: ${unnamed[0]}`)
  return found
}
