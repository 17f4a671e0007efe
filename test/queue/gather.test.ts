// What is asked for at the same time goes together: who leaves when, with whom, and what becomes of a set that fails.
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ALONE, gather } from '../../src/queue/gather.ts'

type Out = string | Error | typeof ALONE

function open(bounds: { max: number; lanes: number; loneMax?: number; keysOf?: (item: string) => readonly string[] }) {
  const sets: { items: readonly string[]; end(outs?: (item: string) => Out): void; fail(): void }[] = []
  const lone: { item: string; end(): void }[] = []
  const ask = gather<string, string>(
    {
      together: items => {
        const { promise, resolve, reject } = Promise.withResolvers<Out[]>()
        const end = (outs: (item: string) => Out = item => `${item} together`) => resolve(items.map(outs))
        sets.push({ items, end, fail: () => reject(new Error('the set failed')) })
        return promise
      },
      alone: item => {
        const { promise, resolve } = Promise.withResolvers<string>()
        lone.push({ item, end: () => resolve(`${item} alone`) })
        return promise
      },
    },
    bounds,
  )
  return { ask, sets, lone, gathered: () => sets.map(({ items }) => items.join('')) }
}

const tick = () => new Promise(resolve => process.nextTick(resolve))
const askAll = (ask: (item: string) => Promise<string>, items: string) => [...items].map(ask)

describe('what is asked for at the same time', () => {
  it('leaves in the same turn of the event loop if nothing is under way', async () => {
    const { ask, lone } = open({ max: 64, lanes: 2 })
    let isOver = false
    setImmediate(() => {
      isOver = true
    })
    void ask('a')
    await tick()
    expect([lone.map(({ item }) => item), isOver]).toEqual([['a'], false])
  })

  it('goes together if it waited for the same thing, although nothing is under way', async () => {
    const { ask, sets, gathered } = open({ max: 64, lanes: 2 })
    const written = tick()
    const asked = Promise.all([...'abc'].map(item => written.then(() => ask(item))))
    await tick()
    await tick()
    expect(gathered()).toEqual(['abc'])
    sets[0]?.end()
    expect(await asked).toEqual(['a together', 'b together', 'c together'])
  })

  it('goes together while a set is under way, up to as many sets as there are lanes', async () => {
    const { ask, sets, lone, gathered } = open({ max: 64, lanes: 2 })
    const first = askAll(ask, 'a')
    await tick()
    first.push(...askAll(ask, 'bc'))
    await turn()
    expect([lone.map(({ item }) => item), gathered()]).toEqual([['a'], ['bc']])
    const later = askAll(ask, 'def')
    await turn()
    expect(gathered()).toEqual(['bc'])
    sets[0]?.end()
    lone[0]?.end()
    expect(await Promise.all(first)).toEqual(['a alone', 'b together', 'c together'])
    await turn()
    expect(gathered()).toEqual(['bc', 'def'])
    sets[1]?.end()
    expect(await Promise.all(later)).toEqual(['d together', 'e together', 'f together'])
  })

  it('is done alone by so many at once, and what has no company meanwhile goes in a set of its own', async () => {
    const { ask, sets, lone, gathered } = open({ max: 64, lanes: 3, loneMax: 2 })
    const first = askAll(ask, 'a')
    await tick()
    const rest = askAll(ask, 'bcd')
    await turn()
    sets[0]?.fail()
    await turn()
    await turn()
    expect(lone.map(({ item }) => item)).toEqual(['a', 'b'])
    const late = ask('e')
    await turn()
    expect(gathered()).toEqual(['bcd', 'e'])
    sets[1]?.end()
    expect(await late).toBe('e together')
    lone[0]?.end()
    await turn()
    expect(lone.map(({ item }) => item)).toEqual(['a', 'b', 'c'])
    lone[1]?.end()
    await turn()
    for (const { end } of lone) end()
    expect(await Promise.all([...first, ...rest])).toEqual(['a', 'b', 'c', 'd'].map(item => `${item} alone`))
  })

  it('goes in several sets if it is more than one may have', async () => {
    const { ask, gathered } = open({ max: 2, lanes: 3 })
    askAll(ask, 'abcdef')
    await turn()
    expect(gathered()).toEqual(['ab', 'cd', 'ef'])
  })

  it('doesn’t go together if it has a key in common, and keeps its order then', async () => {
    const { ask, sets, lone, gathered } = open({ max: 64, lanes: 2, keysOf: item => [...item] })
    const asked = [ask('x')]
    await tick()
    asked.push(...['ab', 'bc', 'c', 'd'].map(ask))
    await turn()
    // "c" could go with "ab", but would overtake "bc".
    expect(gathered()).toEqual(['abd'])
    lone[0]?.end()
    await turn()
    await turn()
    expect(lone.map(({ item }) => item)).toEqual(['x', 'bc'])
    sets[0]?.end()
    lone[1]?.end()
    await Promise.all(asked.slice(0, 3))
    await turn()
    lone[2]?.end()
    expect(await asked[3]).toBe('c alone')
  })

  it('is done alone, each item once, if its set fails or if it had to leave', async () => {
    const { ask, sets, lone } = open({ max: 64, lanes: 2 })
    const first = ask('a')
    await tick()
    const asked = askAll(ask, 'bc')
    lone[0]?.end()
    await first
    await turn()
    sets[0]?.fail()
    await turn()
    expect(lone.map(({ item }) => item)).toEqual(['a', 'b', 'c'])
    for (const { end } of lone) end()
    expect(await Promise.all(asked)).toEqual(['b alone', 'c alone'])
    await turn()
    void ask('x')
    await tick()
    const others = askAll(ask, 'yz')
    await turn()
    const isLost = expect(others[1]).rejects.toThrow('z is lost')
    sets[1]?.end(item => (item === 'y' ? ALONE : new Error(`${item} is lost`)))
    await isLost
    lone.at(-1)?.end()
    expect(await others[0]).toBe('y alone')
  })

  it('doesn’t wait long for an item that is done alone and waits for a lock', async () => {
    const { ask, lone } = open({ max: 64, lanes: 1 })
    void ask('slow')
    await tick()
    const next = ask('next')
    await new Promise<void>(resolve => {
      const look = () => (lone.length === 2 ? resolve() : setImmediate(look))
      look()
    })
    lone[1]?.end()
    expect(await next).toBe('next alone')
  })
})
