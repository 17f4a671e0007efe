// `tokenmill schema upgrade`: the deployment step. open/upgrade.ts does the work; `schema login` is in schema-login.ts.
import type { JsonOption } from '../command.ts'
import { ensureDevClient } from '../open/dev-client.ts'
import { openDatabase, withSession } from '../open/open.ts'
import { upgrade } from '../open/upgrade.ts'
import { print, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption {
  makeKek?: string
}

export function upgradeStore(terminal: Terminal, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const database = await openDatabase(session)
    const upgraded = await upgrade({
      config: session.config,
      database,
      makeKek: options.makeKek,
      tell: line => say(terminal, line),
    })
    const upgradedConfig = { ...session.config, kekFile: upgraded.kekFile ?? session.config.kekFile }
    const dev = database.embedded ? await ensureDevClient({ ...session, config: upgradedConfig }) : undefined
    const files = [...upgraded.files, ...(dev?.made ? [dev.path] : [])]
    const value = {
      migrations: upgraded.migrations,
      installation_id: upgraded.installationId,
      kek_id: upgraded.kekId,
      kek_file: upgraded.kekFile ?? null,
      files,
    }
    const lines = [...upgraded.migrations.map(name => `migrated  ${name}`), ...files.map(path => `made      ${path}`)]
    print(terminal, options, value, lines.length === 0 ? 'up to date' : lines)
    const { kekFile } = upgraded
    if (kekFile !== undefined && upgraded.files.includes(kekFile) && options.makeKek !== undefined)
      say(terminal, `Keep ${kekFile} apart from the database, back it up, and set TOKENMILL_KEK_FILE to it.`)
  })
}
