// Shares of a granted rate, tested with a model of processes that start, ask for shares, renew them, lose answers,
// stall and die, each with a separate clock. Together they may never use more than the granted rate.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Claim,
  demandOf,
  HOLD_MS,
  NO_DEMAND,
  type RateClaim,
  renew,
  type Seen,
  targetsOf,
} from '../../src/scheme/rate-allocation.ts'

const PROVIDER = 'mdes'
const NOTHING = { interactive: 0, bulk: 0 }

interface Process {
  name: string
  interactive: boolean
  /** The difference of its clock from the model's. */
  offsetMs: number
  speed: number
  wants: Claim['wants']
  beat: number
  share: number
  /** Until when the share may be used, by its own clock. */
  until: number
  seen: Seen
  asked: { sentAt: number; holds: number } | undefined
  answer: { sentAt: number; share: number } | undefined
}

/** Opens the model: the store, which has no clock, and the processes that use it. */
function openModel(granted: number) {
  const rates = new Map([[PROVIDER, granted]])
  let now = 0
  let names = 0
  let lines: RateClaim[] = []
  const processes: Process[] = []
  const clockOf = ({ offsetMs, speed }: Process) => offsetMs + now * speed
  const usedBy = (process: Process) => (clockOf(process) < process.until ? process.share : 0)
  const lineOf = (process: Process, holds: number): RateClaim => ({
    provider: PROVIDER,
    process: process.name,
    interactive: process.interactive,
    wants: process.wants,
    holds,
    beat: process.beat,
  })
  const model = {
    processes,
    lines: () => lines,
    used: () => processes.reduce((total, process) => total + usedBy(process), 0),
    usedBy,
    pass: (ms: number) => {
      now += ms
    },
    arrive: (interactive: boolean, offsetMs: number, speed: number) => {
      names += 1
      processes.push({
        name: `p${names}`,
        interactive,
        offsetMs,
        speed,
        wants: NOTHING,
        beat: 0,
        share: 0,
        until: Number.NEGATIVE_INFINITY,
        seen: new Map(),
        asked: undefined,
        answer: undefined,
      })
    },
    /** Begins an exchange; an earlier answer that didn't arrive is lost. */
    ask: (process: Process) => {
      process.beat += 1
      process.answer = undefined
      process.asked = { sentAt: clockOf(process), holds: usedBy(process) }
    },
    /** Runs the transaction of the exchange. */
    commit: (process: Process) => {
      if (!process.asked) return
      const { sentAt, holds } = process.asked
      const ours = [lineOf(process, holds)]
      const next = renew(rates, ours, { lines, seen: process.seen, now: clockOf(process) })
      lines = [...next.others, ...next.ours]
      process.seen = next.seen
      process.asked = undefined
      process.answer = { sentAt, share: next.shares.get(PROVIDER) ?? 0 }
    },
    hear: (process: Process) => {
      if (!process.answer) return
      const { sentAt, share } = process.answer
      process.answer = undefined
      if (clockOf(process) >= sentAt + HOLD_MS) return
      process.share = share
      process.until = sentAt + HOLD_MS
    },
    die: (process: Process) => {
      processes.splice(processes.indexOf(process), 1)
    },
    leave: (process: Process) => {
      model.die(process)
      lines = lines.filter(line => line.process !== process.name)
    },
    /** Starts another process in the place of this one. */
    restart: (process: Process) => {
      Object.assign(process, { beat: process.beat + 1_000, share: 0, until: Number.NEGATIVE_INFINITY, seen: new Map() })
      Object.assign(process, { asked: undefined, answer: undefined })
    },
    renew: (process: Process) => {
      model.ask(process)
      model.commit(process)
      model.hear(process)
    },
  }
  return model
}

type Model = ReturnType<typeof openModel>

const rate = fc.constantFrom(0, 1, 5, 20, 80, 500, 1_000)
const wants = fc.record({ interactive: rate, bulk: rate })
const which = fc.nat(20)
const of = (model: Model, index: number) => model.processes[index % Math.max(1, model.processes.length)]
const step = fc.oneof(
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.boolean(), fc.integer({ min: -1e9, max: 1e9 }), fc.double({ min: 0.95, max: 1.05, noNaN: true }))
      .map(
        ([interactive, offset, speed]) =>
          (model: Model) =>
            model.arrive(interactive, offset, speed),
      ),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(which, wants).map(([index, want]) => (model: Model) => {
      const process = of(model, index)
      if (process) process.wants = want
    }),
  },
  ...(['renew', 'ask', 'commit', 'hear', 'die', 'leave', 'restart'] as const).map((deed, at) => ({
    weight: [8, 4, 4, 4, 1, 1, 1][at] ?? 1,
    arbitrary: which.map(index => (model: Model) => {
      const process = of(model, index)
      if (process) model[deed](process)
    }),
  })),
  {
    weight: 4,
    arbitrary: fc.constantFrom(10, 200, 1_000, 2_000, 4_000, 7_000).map(ms => (model: Model) => model.pass(ms)),
  },
)

describe('shares of a granted rate', () => {
  it('are together never more than it, whoever renews, stalls, dies or isn’t answered, and whatever clocks say', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(0.1, 2, 200),
        fc.array(step, { minLength: 1, maxLength: 120, size: 'max' }),
        (granted, steps) => {
          const model = openModel(granted)
          for (const act of steps) {
            act(model)
            expect(model.used()).toBeLessThanOrEqual(granted + 1e-9)
            const held = model.lines().reduce((total, { holds }) => total + holds, 0)
            expect(held).toBeLessThanOrEqual(granted + 1e-9)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('are what is due to each, as soon as everybody has renewed twice, and what the dead held is used again', () => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 80, size: 'max' }),
        fc.array(wants, { minLength: 1, maxLength: 6 }),
        (steps, all) => {
          const granted = 200
          const model = openModel(granted)
          for (const act of steps) act(model)
          while (model.processes.length > all.length) model.processes.pop()
          while (model.processes.length < all.length) model.arrive(model.processes.length === 0, 0, 1)
          for (const [index, process] of model.processes.entries()) process.wants = all[index] ?? NOTHING
          // Long enough that dead processes are known to be dead, and that all others renew three times: to be seen, to
          // give back, to take.
          for (let second = 0; second < 12; second += 1) {
            model.pass(1_000)
            for (const process of model.processes) model.renew(process)
          }
          const claims = model.processes.map(({ name, interactive, wants: want }) => ({
            process: name,
            interactive,
            wants: want,
            holds: 0,
          }))
          const targets = targetsOf(granted, claims)
          for (const process of model.processes)
            expect(model.usedBy(process)).toBeCloseTo(targets.get(process.name) ?? 0, 2)
        },
      ),
      { numRuns: 500 },
    )
  })
})

const claim = (process: string, interactive: boolean, wanted: Partial<Claim['wants']>): Claim => ({
  process,
  interactive,
  wants: { ...NOTHING, ...wanted },
  holds: 0,
})
const targets = (...claims: Claim[]) => Object.fromEntries(targetsOf(200, claims))

describe('what is due', () => {
  it('is all but small floors to the only one that wants it', () => {
    expect(targets(claim('i', true, {}), claim('a', false, { bulk: 1_000 }), claim('b', false, {}))).toEqual({
      i: 6,
      a: 193.5,
      b: 0.5,
    })
  })

  it('is the same to all who want more than that, and what is wanted to those who want less', () => {
    const due = targets(
      claim('i', true, {}),
      claim('a', false, { bulk: 20 }),
      ...['b', 'c'].map(name => claim(name, false, { bulk: 500 })),
    )
    expect(due['a']).toBeCloseTo(20)
    expect(due['b']).toBeCloseTo(87)
    expect(due['c']).toBeCloseTo(87)
  })

  it('goes to interactive calls first, up to a good part, on however many hosts', () => {
    const bulk = [claim('a', false, { bulk: 1_000 }), claim('b', false, { bulk: 1_000 })]
    expect(targets(claim('i', true, { interactive: 60 }), ...bulk)['i']).toBeCloseTo(60)
    const due = targets(claim('i', true, { interactive: 500 }), claim('j', true, { interactive: 500 }), ...bulk)
    expect((due['i'] ?? 0) + (due['j'] ?? 0)).toBeGreaterThanOrEqual(100)
    expect(due['a']).toBeGreaterThan(40)
  })

  it('is all of it to interactive calls where nobody else wants any', () => {
    expect(targets(claim('i', true, { interactive: 500 }), claim('a', false, {}))['i']).toBeCloseTo(199)
  })

  it('is bulk’s also where the process that serves interactive kinds does it', () => {
    const due = targets(
      claim('i', true, { bulk: 64 }),
      claim('a', false, { bulk: 64 }),
      claim('b', false, { bulk: 500 }),
    )
    expect(due).toMatchObject({ i: 64, a: 64 })
    expect(due['b']).toBeCloseTo(72)
  })
})

describe('what is wanted', () => {
  const load = (started: number, waiting: number) => ({
    started: { interactive: 0, bulk: started },
    waiting: { interactive: 0, bulk: waiting },
  })

  it('is what waits, what was used of late, and a little more', () => {
    let demand = NO_DEMAND
    for (let second = 1; second <= 10; second += 1) demand = demandOf(demand, load(second * 80, 0), 1)
    expect(demand.wants.bulk).toBeGreaterThan(95)
    expect(demandOf(demand, load(880, 500), 1).wants.bulk).toBeGreaterThan(2_000)
  })

  it('is little a second after the end of the work', () => {
    let demand = demandOf(NO_DEMAND, load(500, 500), 1)
    for (let second = 0; second < 2; second += 1) demand = demandOf(demand, load(1_000, 0), 1)
    expect(demand.wants.bulk).toBeLessThan(30)
  })
})
