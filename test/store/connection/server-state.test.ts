// Which of several servers is used, by what the servers report.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Answer, choose, Unfit } from '../../../src/store/connection/server-state.ts'

let servers = 0
const answer = (host: string, timeline: number, more: Partial<Answer['standing'] & Answer> = {}): Answer => {
  servers += 1
  const { record, writable = true, system = 'ours', started = `${servers}` } = more
  return { host: { host, port: 1 }, standing: { writable, system, timeline, started }, record }
}
const chosenOf = (answers: Answer[], seen?: { system: string; timeline: number }) =>
  choose(answers, seen).chosen.host.host

describe('of servers that take writes', () => {
  it('that of the highest timeline is worked on, and more than one is known', () => {
    const choice = choose([answer('old', 1), answer('new', 2), answer('standby', 2, { writable: false })], undefined)
    expect(choice.chosen.host.host).toBe('new')
    expect(choice.writable).toHaveLength(2)
  })

  it('one below what a standby follows, the store has recorded or this process saw is refused', () => {
    expect(() => chosenOf([answer('old', 1), answer('standby', 2, { writable: false })])).toThrow(Unfit)
    expect(() => chosenOf([answer('old', 1, { record: { system: 'ours', timeline: 2 } })])).toThrow(/left behind/)
    expect(() => chosenOf([answer('old', 1)], { system: 'ours', timeline: 2 })).toThrow(/timeline is 1, 2 was seen/)
  })

  it('none is worked on while two are on the same timeline', () => {
    expect(() => chosenOf([answer('a', 3), answer('b', 3)])).toThrow(/same timeline/)
  })

  it('one that is named twice is one', () => {
    const choice = choose([answer('a', 3, { started: 'x' }), answer('alias', 3, { started: 'x' })], undefined)
    expect(choice.writable).toHaveLength(1)
  })

  it('one of another system is never taken for ours, whatever its timeline', () => {
    const ours = { system: 'ours', timeline: 1 }
    expect(chosenOf([answer('dump', 9, { system: 'other', record: ours }), answer('ours', 1, { record: ours })])).toBe(
      'ours',
    )
    expect(chosenOf([answer('empty', 9, { system: 'other' }), answer('ours', 1, { record: ours })])).toBe('ours')
    expect(() => chosenOf([answer('other', 9, { system: 'other' })], ours)).toThrow(Unfit)
    expect(() => chosenOf([answer('a', 1), answer('b', 1, { system: 'other' })])).toThrow(/hold different databases/)
  })

  it('whatever is answered, a server is worked on only where it takes writes on the highest timeline of all', () => {
    const server = fc.record({ timeline: fc.integer({ min: 1, max: 4 }), writable: fc.boolean() })
    fc.assert(
      fc.property(fc.array(server, { minLength: 1, maxLength: 5 }), fc.integer({ min: 0, max: 4 }), (servers, saw) => {
        const answers = servers.map(({ timeline, writable }, index) => answer(`h${index}`, timeline, { writable }))
        const seen = saw === 0 ? undefined : { system: 'ours', timeline: saw }
        const highest = Math.max(saw, ...servers.map(({ timeline }) => timeline))
        const fit = answers.filter(({ standing }) => standing.writable && standing.timeline === highest)
        if (fit.length === 1) expect(choose(answers, seen).chosen).toBe(fit[0])
        else expect(() => choose(answers, seen)).toThrow(Unfit)
      }),
    )
  })
})
