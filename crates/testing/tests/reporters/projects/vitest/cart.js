export const first = (user) => {
  return user.name;
};
