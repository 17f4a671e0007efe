// Whether webhook endpoints accept their deliveries.
import * as clients from '../../../src/store/access/clients.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import { count } from '../../../src/units.ts'
import { type Verdict, warning, well } from '../check.ts'
import type { WorkSources } from './work.ts'

const SHOWN_MAX = 5
const NEXT = {
  disabled: 'ask its owner, then `tokenmill events enable ID`',
  failing: '`tokenmill events deliveries --endpoint ID`',
} as const

export async function askWebhooks({ store, now }: Pick<WorkSources, 'store' | 'now'>): Promise<Verdict> {
  const db = await store()
  const failedSince = now - endpoints.TROUBLE.failedMs
  const troubled = await endpoints.listTroubled(db, { ...endpoints.TROUBLE, failedSince })
  if (troubled.length === 0) return well('no endpoint is disabled, and none fails')
  const names = new Map((await clients.list(db)).map(({ clientId, name }) => [clientId, name]))
  const shown = troubled
    .slice(0, SHOWN_MAX)
    .map(({ endpointId, clientId, state }) => `${endpointId} of ${names.get(clientId) ?? clientId} is ${state}`)
  const more = troubled.length > shown.length ? `, and ${troubled.length - shown.length} more` : ''
  const next = (['disabled', 'failing'] as const).filter(state => troubled.some(one => one.state === state))
  const says = `${count(troubled.length, 'endpoint')} in trouble: ${shown.join(', ')}${more}`
  return warning(says, next.map(state => NEXT[state]).join('; '))
}
