// The acts that are refused while the place of the audit is away.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { needsOutside } from '../../src/store/access/audit-chain.ts'

const REFUSED = [
  ...[
    'capture-key.add',
    'capture-key.retire',
    'capture-key.rotate',
    'capture-key.turning',
    'client.api-key.rotate',
    'client.key.add',
    'client.key.retire',
  ],
  ...[
    'client.key.revoke',
    'data-key.add',
    'data-key.compromise',
    'data-key.destroy',
    'data-key.reseal',
    'data-key.reseal-cancel',
  ],
  ...['data-key.retire', 'data-key.rotate', 'kek.add', 'kek.backup', 'kek.forget', 'kek.rotate'],
  ...[
    'manifest.key.destroy',
    'manifest.key.hand-out',
    'manifest.key.make',
    'role-key.add',
    'role-key.forget',
    'references.compare',
    'references.export',
  ],
  ...['list.exported', 'report.download', 'signing-key.add', 'signing-key.announce', 'signing-key.begin'],
  ...[
    'signing-key.cancel',
    'system.key.end',
    'system.key.rotate',
    'threeds-contract.add',
    'threeds-contract.key-revoke',
    'threeds-contract.key-rotate',
  ],
]
const NEVER = [
  ...[
    'audit.export',
    'audit.head-moved',
    'audit.prune',
    'audit.verify',
    'audit.went-back',
    'batch.cancel',
    'batch.note',
    'batch.pause',
    'batch.resume',
  ],
  ...[
    'bin-table.import',
    'confirmation.ask',
    'confirmation.confirm',
    'confirmation.use',
    'display.add',
    'display.revoke',
    'client.add',
    'client.names',
    'client.revoke',
    'events.add',
    'events.enable',
  ],
  ...['events.redeliver', 'events.remove', 'events.rotate-secret', 'failed.discard', 'failed.retry'],
  // Restoring a key isn't refused: the place of the audit may be lost, too.
  ...[
    'key-lives.restored',
    'installation.begin',
    'kek.restore',
    'manifest.total',
    'orders.ingest',
    'schedule.add',
    'schedule.remove',
  ],
  ...['invite.revoke', 'person.change', 'person.enrol', 'person.invite', 'person.link', 'person.local'],
  ...['person.prove', 'person.revoke', 'receipt.confirm', 'reversal.confirm', 'schedule.pause', 'schedule.resume'],
  ...['passkey.forget-domain', 'identity.connect', 'identity.disconnect'],
  ...['schedule.run', 'schema.login', 'schema.upgrade', 'scheme.drift', 'scope.add'],
]
const ACTION = /(?:\baction: |\bconst [A-Z_]+ = |onEndpoint\(\w+, )'(?!body\.)([a-z-]+(?:\.[a-z-]+)+)'/g

async function listActions(): Promise<string[]> {
  const found = new Set<string>()
  for (const room of ['src', 'workers', 'cli', 'producers'])
    for (const file of await readdir(room, { recursive: true })) {
      if (!file.endsWith('.ts')) continue
      const text = await readFile(join(room, file), 'utf8')
      for (const [, action = ''] of text.matchAll(ACTION)) found.add(action)
    }
  return [...found].sort()
}

it('every act is in one of the two lists', async () => {
  expect(await listActions()).toEqual([...REFUSED, ...NEVER].sort())
})

it('acts on keys and exports need the outside place of the audit, other acts do not', () => {
  expect(REFUSED.filter(action => !needsOutside(action))).toEqual([])
  expect(NEVER.filter(needsOutside)).toEqual([])
})
