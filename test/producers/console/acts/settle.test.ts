// An act is sent once, so whatever fails around it leads to its page.
import { expect, it } from 'vitest'
import type { Unproved } from '../../../../producers/console/acts/request.ts'
import { settleAct } from '../../../../producers/console/acts/settle.ts'
import { openLog } from '../../../../src/log.ts'
import type { Store } from '../../../../src/store/pool.ts'

const away = { query: () => Promise.reject(new Error('away')) } as unknown as Store
const log = openLog('silent')
const request = { nonce: 'n' } as Unproved

it('resolves with the verdict where the store does not keep it', async () => {
  const sendAct = async () => ({ done: true as const, auditId: '1' })
  expect(await settleAct({ store: away, sendAct, log }, request, null)).toEqual({ done: true, auditId: '1' })
})

it('is not known where sending fails', async () => {
  const sendAct = () => Promise.reject(new Error('lost'))
  expect(await settleAct({ store: away, sendAct, log }, request, null)).toEqual({ done: null })
})
