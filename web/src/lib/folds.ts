// What a person unfolded stays unfolded, also after a reload.
const limit = 400;

export class Folds {
  #key: string;
  #open: Map<string, boolean>;

  constructor(conversation: string) {
    this.#key = `continuo.open.${conversation}`;
    let list: [string, boolean][] = [];
    try {
      list = JSON.parse(sessionStorage.getItem(this.#key) ?? '[]');
    } catch {
      // Nothing was kept.
    }
    this.#open = new Map(list);
  }

  get(name: string, otherwise = false): boolean {
    return this.#open.get(name) ?? otherwise;
  }

  set(name: string, open: boolean) {
    this.#open.delete(name);
    this.#open.set(name, open);
    try {
      sessionStorage.setItem(this.#key, JSON.stringify([...this.#open].slice(-limit)));
    } catch {
      // Not kept.
    }
  }
}
