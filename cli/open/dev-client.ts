// The ready-made client of an embedded installation, for first trials: an entity, a scope and a client with its keys,
// all in `<data dir>/dev-client.json`. In production there is no such client.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type ClientFile, readClientFile } from '../../producers/client/client-file.ts'
import type { Config } from '../../src/config.ts'
import type { Role } from '../../src/job/catalogue.ts'
import * as clients from '../../src/store/access/clients.ts'
import { withUpgradeLock } from '../../src/store/upgrade-lock.ts'
import { jsonText, writePrivate } from './key-files.ts'
import { makeScope } from './make-scope.ts'
import { type OpenedVault, openVault, type Session } from './open.ts'
import { baseUrlOf, describeClient, registerClient, relativeTo } from './register-client.ts'

const ROLES: Role[] = [
  ...(['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN'] as const),
  ...(['LEDGER_WRITE', 'REPORT_READ', 'REPORT_REQUEST', 'THREEDS'] as const),
]

interface DevClient {
  path: string
  /** False if the client existed already. */
  made: boolean
  /** The file's content; names of files in it are relative to `path`. */
  file: ClientFile
}

type Settings = Pick<Config, 'dataDir' | 'audience' | 'httpHost' | 'httpPort' | 'tls'>

export function devClientPath({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'dev-client.json')
}

/**
 * Makes the client, or updates address, scope and capture keys in its file. If two processes do so at once, one client
 * is made.
 */
export async function ensureDevClient(session: Session): Promise<DevClient> {
  const { config } = session
  const vault = await openVault(session)
  return withUpgradeLock(vault.database.url, async () => {
    const path = devClientPath(config)
    const known = existsSync(path) ? await readClientFile(path) : undefined
    const isOurs = known !== undefined && (await clients.find(vault.store, known.client_id)) !== undefined
    const file = isOurs ? await refresh(vault, config, known) : await make(vault, config)
    if (JSON.stringify(file) !== JSON.stringify(known)) await writePrivate(path, jsonText(file), { replace: true })
    return { path, made: !isOurs, file }
  })
}

const outDirOf = ({ dataDir }: Settings) => join(dataDir, 'clients', 'dev-client')

async function make(vault: OpenedVault, config: Settings): Promise<ClientFile> {
  const entityId = randomUUID()
  const scope = { entityId, par: false, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const
  await makeScope(vault, scope)
  const registered = await registerClient(vault, {
    name: 'dev-client',
    entities: [entityId],
    roles: ROLES,
    publicJwk: undefined,
    outDir: outDirOf(config),
    // A file that is there belongs to a client that this database doesn't have.
    replace: true,
    audience: config.audience,
    baseUrl: baseUrlOf(config),
  })
  return inOrder(relativeTo(config.dataDir, registered))
}

async function refresh(vault: OpenedVault, config: Settings, known: ClientFile): Promise<ClientFile> {
  const place = { outDir: outDirOf(config), audience: config.audience, baseUrl: baseUrlOf(config) }
  const keyFile = known.signing_key_file
  const described = await describeClient(vault, place, {
    clientId: known.client_id,
    userId: known.user_id,
    entityId: known.entity_id,
    signingKeyFile: keyFile === null ? null : resolve(dirname(devClientPath(config)), keyFile),
    names: known.names,
  })
  const file = relativeTo(config.dataDir, described)
  return inOrder(known.api_key === undefined ? file : { ...file, api_key: known.api_key })
}

/** The members in the order of the contract, so that equal contents give equal texts. */
function inOrder({ contract, client_id, user_id, api_key, ...rest }: ClientFile): ClientFile {
  return {
    ...(contract === undefined ? {} : { contract }),
    client_id,
    user_id,
    ...(api_key === undefined ? {} : { api_key }),
    ...rest,
  }
}
