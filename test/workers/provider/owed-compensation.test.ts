// The rule for the intents of a refused job: owed, abandoned or withdrawn. jobs.test.ts tests the compensation itself.
import { describe, expect, it } from 'vitest'
import type { StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import { compensationOf } from '../../../workers/provider/owed-compensation.ts'

type Row = Pick<StoredScheme, 'lastIntent' | 'asked' | 'state' | 'background'>

const row: Row = { lastIntent: 'intent', asked: null, state: 'PENDING', background: false }

function judge(state: 'INTENDED' | 'DONE', rows: readonly (readonly [string, Row])[]) {
  const intent = { intentId: 'intent', provisionId: 'row', state }
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

  it('leaves a provisioning that the loop works, and one that is there', () => {
    for (const kept of [
      { ...row, background: true },
      { ...row, state: 'ACTIVE' as const },
    ])
      expect(judge('INTENDED', [['row', kept]])).toEqual({ owed: [], abandoned: ['intent'], withdrawn: [] })
  })
})
