// `tokenmill key make kek`: makes a file with a new key-encryption key, for a later `key rotate kek --to`. It opens no
// store; `schema upgrade --make-kek` makes the first key-encryption key of an installation.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fileKeyProvider, makeKekFile } from '../../../src/vault/kek/file.ts'
import type { JsonOption } from '../../command.ts'
import { facts, print, say, type Terminal } from '../../terminal.ts'

export async function makeKek(terminal: Terminal, file: string, options: JsonOption): Promise<void> {
  const path = resolve(file)
  await makeKekFile(path)
  const { id } = await fileKeyProvider(path)
  const made = { kek_id: id, uri: pathToFileURL(path).href.replace('file://', 'file:') }
  print(terminal, options, made, facts(made))
  say(
    terminal,
    'Copy it to every host that opens the vault, and add its URI to TOKENMILL_KEK there. Back it up as soon as it is current.',
  )
}
