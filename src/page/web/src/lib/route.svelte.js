// Which part of the page is shown: the word after # in the address, so that a link, Back and a reload all work.

export const kParts = ["chat", "now", "lengths", "history", "settings"];

const wanted = () => {
    const word = location.hash.slice(1).split("/")[0];
    return kParts.includes(word) ? word : kParts[0];
};

export const route = $state({ part: wanted() });

addEventListener("hashchange", () => {
    route.part = wanted();
});
