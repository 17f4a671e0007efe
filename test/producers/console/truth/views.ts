// The pages and streams of the console that can say well, each with the claims that it makes while everything runs, and what has to
// work for each. Without the store every claim ends: nothing is seen then.
import type { Claim } from './claims.ts'
import type { World } from './world.ts'

export const PARTS = ['workers', 'Redis', 'scheduler', 'store'] as const
export type Part = (typeof PARTS)[number]

/** What alone shows that a claim is true; after 10 s without it the claim is gone. */
type Claims = Readonly<Partial<Record<Claim, readonly Part[]>>>

export interface View {
  name: string
  path: (world: World) => string
  cookie: (world: World) => string
  claims: Claims
  /** It is not asked after the stop of this part: it is another page then. */
  last?: Part
  /** It is a stream; `path` is where it is. */
  isStream?: true
}

const ALL = ['workers', 'Redis', 'scheduler'] as const

/** A batch that runs: workers and queues have to be heard, and only a scheduler sees the queues. */
const RUNNING_BATCH: Claims = { RUNNING: ALL, 'rate of a batch': ALL, 'end of a batch': ALL }
const QUEUES: Claims = {
  'tone of figures of queues': ['Redis', 'scheduler'],
  'tone of kinds': ['Redis', 'scheduler'],
  'depths of queues': ['Redis', 'scheduler'],
}
/** Workers write to the store what they did, so neither is about Redis. A wait is summed up by the scheduler. */
const WORK: Claims = {
  'tone of rows per second': ['workers'],
  'work of a minute': ['workers'],
  'wait of a minute': ['workers', 'scheduler'],
}
const SENTENCE: Claims = { Well: ALL, 'tone of the sentence': ALL }
/** The outbox is in the store; the scheduler looks. */
const OUTBOX: Claims = { 'tone of the outbox': ['scheduler'] }
/** That it is heard says each process itself, by the store. */
const HOSTS: Claims = {
  'tone of hosts of workers': ['workers'],
  'tone of hosts of the scheduler': ['scheduler'],
  'tone of hosts of consoles': [],
}
const NOW: Claims = { ...SENTENCE, ...RUNNING_BATCH, ...QUEUES, ...WORK, ...OUTBOX, ...HOSTS }
const NOW_LIMITED: Claims = { ...SENTENCE, ...RUNNING_BATCH }
const WALL: Claims = {
  ...SENTENCE,
  ...QUEUES,
  ...WORK,
  ...OUTBOX,
  // How many are heard is counted; the console itself goes on. Without workers it is another number, of which the sentence tells.
  'processes heard': [],
}
/** Whether a batch is stalled is seen as whether it runs. How many are open the store says. */
const WALL_LIMITED: Claims = { ...SENTENCE, 'tone of open batches': [], 'tone of stalled batches': ALL }

const whole = ({ cookies }: World) => cookies.whole
const limited = ({ cookies }: World) => cookies.limited

export const VIEWS: readonly View[] = [
  { name: 'Now', path: () => '/now', cookie: whole, claims: NOW },
  { name: 'Now, for some entities', path: () => '/now', cookie: limited, claims: NOW_LIMITED },
  { name: 'Now, live', path: () => '/now/live', cookie: whole, claims: NOW, isStream: true },
  {
    name: 'Now, live, for some entities',
    path: () => '/now/live',
    cookie: limited,
    claims: NOW_LIMITED,
    isStream: true,
  },
  {
    name: 'Batches',
    path: () => '/batches',
    cookie: whole,
    // A batch that ended has ended, whatever is away.
    claims: { RUNNING: ALL, FINISHED: [] },
  },
  {
    name: 'Batches, filtered',
    path: () => '/batches?state=running',
    cookie: limited,
    claims: { RUNNING: ALL },
  },
  { name: 'a batch that runs', path: ({ running }) => `/batches/${running}`, cookie: whole, claims: RUNNING_BATCH },
  {
    name: 'a batch that runs, for its entity',
    path: ({ running }) => `/batches/${running}`,
    cookie: limited,
    claims: RUNNING_BATCH,
  },
  {
    name: 'a batch that runs, live',
    path: ({ running }) => `/batches/${running}/live`,
    cookie: whole,
    claims: RUNNING_BATCH,
    isStream: true,
  },
  {
    name: 'a batch that is open',
    path: ({ open }) => `/batches/${open}`,
    cookie: whole,
    // OPEN says that no chunk has told how many there will be, as the store has it. It doesn't say that the batch goes on.
    claims: { 'rate of a batch': ALL },
  },
  {
    name: 'a batch that has ended',
    path: ({ finished }) => `/batches/${finished}`,
    cookie: whole,
    claims: { FINISHED: [] },
  },
  {
    name: 'Reports',
    path: () => '/reports',
    cookie: whole,
    // A schedule is on time while nothing that was due is late, which the store knows, and a scheduler looks what is due. A run
    // that workers or queues leave undone is LATE at its time. QUEUED says where the run was last; it has its own page.
    claims: { 'ON TIME': ['scheduler'], SUCCEEDED: [], QUEUED: [] },
  },
  {
    name: 'a schedule',
    path: ({ schedule }) => `/reports/schedules/${schedule}`,
    cookie: limited,
    claims: { 'ON TIME': ['scheduler'], SUCCEEDED: [], QUEUED: [] },
  },
  {
    name: 'a run',
    path: ({ run }) => run,
    cookie: limited,
    claims: { QUEUED: [], 'a worker makes the report': ['workers'] },
  },
  {
    name: 'a run that is due',
    path: ({ due }) => due,
    cookie: limited,
    claims: { 'a scheduler sends the run': ['scheduler'] },
  },
  // Copies are read from Redis when the page is made, whoever else is away.
  { name: 'Failed', path: () => '/failed', cookie: whole, claims: { 'no failed job': ['Redis'] } },
  {
    name: 'Failed, filtered',
    path: () => '/failed?kind=report',
    cookie: limited,
    claims: { 'no failed job like this': ['Redis'] },
  },
  {
    name: 'a job in work',
    path: ({ inWork }) => inWork,
    cookie: whole,
    // Its queue is read when the page is made. That its worker lives only its heartbeat says.
    claims: { 'IN WORK': ['workers', 'Redis'], 'a worker has the job': ['workers', 'Redis'] },
    // When Redis is back, another worker takes the job.
    last: 'Redis',
  },
  {
    name: 'a job that is decided',
    path: ({ decided }) => decided,
    cookie: whole,
    // The decision is in the store. Whether its answer was read is in Redis.
    claims: { DONE: [], 'answer delivered': ['Redis'], 'nothing has to be done': ['Redis'] },
  },
  {
    name: 'Installation',
    path: () => '/installation',
    cookie: whole,
    claims: {
      'nothing here needs you': ALL,
      'ALIVE, of workers': ['workers'],
      'ALIVE, of the scheduler': ['scheduler'],
      'ALIVE, of the console': [],
      'a network is called': ['workers'],
      // It names the time for which it holds.
      'processes have the key': [],
    },
  },
  { name: 'a wall display', path: () => '/display', cookie: ({ cookies }) => cookies.wall, claims: WALL },
  {
    name: 'a wall display for some entities',
    path: () => '/display',
    cookie: ({ cookies }) => cookies.ourWall,
    claims: WALL_LIMITED,
  },
  {
    name: 'a wall display, live',
    path: () => '/display/live',
    cookie: ({ cookies }) => cookies.wall,
    claims: WALL,
    isStream: true,
  },
  {
    name: 'a wall display for some entities, live',
    path: () => '/display/live',
    cookie: ({ cookies }: World) => cookies.ourWall,
    claims: WALL_LIMITED,
    isStream: true,
  },
]
