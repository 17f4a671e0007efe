// The rule for the intents of a refused job: owed, abandoned or withdrawn. jobs.test.ts tests the compensation itself.
import { describe, expect, it } from 'vitest'
import { SUSPENDED_BY_US } from '../../../src/token/scheme.ts'
import { compensationOf, type Provisioning } from '../../../workers/provider/owed-compensation.ts'

const row: Provisioning = {
  lastIntent: 'intent',
  asked: null,
  state: 'PENDING',
  background: false,
  suspendedBy: [],
  retiredAt: null,
}

function judge(
  state: 'INTENDED' | 'DONE',
  rows: readonly (readonly [string, Provisioning])[],
  action: 'PROVISION' | 'SUSPEND' | 'RESUME' = 'PROVISION',
) {
  const intent = { intentId: 'intent', provisionId: 'row', action, state }
  const { owed, abandoned, withdrawn } = compensationOf('receipt', [intent], new Map(rows))
  return { owed, abandoned, withdrawn }
}

describe('an intent of a job that is refused', () => {
  it('is owed once it is done, whatever its row says', () => {
    expect(judge('DONE', [])).toEqual({ owed: ['intent'], abandoned: [], withdrawn: [] })
    expect(judge('DONE', [['row', row]])).toEqual({ owed: ['intent'], abandoned: [], withdrawn: [] })
  })

  it('is owed while a call of it is under way: the call may have had its effect', () => {
    const asked = { ...row, asked: 'PROVISION' as const }
    expect(judge('INTENDED', [['row', asked]])).toEqual({ owed: ['intent'], abandoned: [], withdrawn: [] })
  })

  it('is abandoned where the call is another job’s', () => {
    const foreign = { ...row, asked: 'PROVISION' as const, lastIntent: 'another' }
    expect(judge('INTENDED', [['row', foreign]])).toEqual({ owed: [], abandoned: ['intent'], withdrawn: [] })
  })

  it('takes its provisioning with it that the provider was never asked for', () => {
    expect(judge('INTENDED', [['row', row]])).toEqual({ owed: [], abandoned: ['intent'], withdrawn: ['row'] })
  })

  it('leaves a provisioning that the loop works', () => {
    for (const state of ['PENDING', 'ACTIVE'] as const)
      expect(judge('INTENDED', [['row', { ...row, background: true, state }]])).toEqual({
        owed: [],
        abandoned: ['intent'],
        withdrawn: [],
      })
  })

  const active = { ...row, state: 'ACTIVE' as const }
  const suspended = (...suspendedBy: string[]) => ({ ...row, state: 'SUSPENDED' as const, suspendedBy })
  it.each([
    ['PROVISION', active, true],
    ['PROVISION', { ...row, state: 'INACTIVE' as const }, true],
    ['PROVISION', { ...active, retiredAt: 1 }, false],
    ['PROVISION', { ...active, lastIntent: 'another' }, false],
    ['SUSPEND', suspended(SUSPENDED_BY_US), true],
    ['SUSPEND', suspended(SUSPENDED_BY_US, 'ISSUER'), true],
    ['SUSPEND', suspended('ISSUER'), false],
    ['SUSPEND', active, false],
    ['RESUME', active, true],
    ['RESUME', suspended('ISSUER'), true],
    ['RESUME', suspended(SUSPENDED_BY_US), false],
  ] as const)('is owed if its row shows its effect, which the loop has learned: %s %j: %s', (action, shown, isOwed) => {
    expect(judge('INTENDED', [['row', shown]], action)).toMatchObject(
      isOwed ? { owed: ['intent'], abandoned: [] } : { owed: [], abandoned: ['intent'] },
    )
  })
})
